#pragma once

#include "kernels/generator/selection.hpp"

#include <span>
#include <string>
#include <vector>

namespace fmha::generator {

/// One translation unit: at least one kernel, all of one architecture.
struct Unit {
    std::string stem; ///< file name without extension
    std::vector<NamedKernel> kernels;
};

/// Cuts a list into units of up to `per_file` kernels of one architecture, in order. The stem is the first kernel's
/// name, and how many follow it.
std::vector<Unit> units_of(std::span<const NamedKernel> kernels, std::size_t per_file);

/// The HIP source of a unit, formatted as the project's clang-format file says. A function of the unit alone.
std::string source_of(const Unit& unit);

/// Throws DeclarationError when two kernels would export one symbol.
void check_symbols(std::span<const NamedKernel> kernels);

} // namespace fmha::generator
