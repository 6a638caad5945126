#pragma once

#include "kernels/generator/compiler.hpp"
#include "kernels/generator/listing.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>

namespace fmha::generator {

/// llvm-mca of the same LLVM as the compiler; empty when it is not installed.
std::filesystem::path analyzer_of(const Compiler& compiler);

/// The clock cycles that `analyzer` (llvm-mca) gives an iteration of `path` in one wave: in order, with LLVM's latencies, branches
/// and barriers left out. 0 when it says nothing within two seconds or before `stop` says true, or for an architecture that is
/// not CDNA.
std::int64_t second_opinion(std::span<const Instruction> path, const ArchName& arch,
                            const std::filesystem::path& analyzer, const std::function<bool()>& stop = {});

} // namespace fmha::generator
