#pragma once

#include "kernels/generator/source.hpp"

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace fmha::generator {

/// Makes an output folder, or takes a folder that this function made before. Files of earlier runs are removed from it, so
/// throws InputError for a folder with content of somebody else.
void claim_folder(const std::filesystem::path& folder);

/// Where the source of a unit lies inside an output folder.
std::string source_file(const Unit& unit, std::string_view extension);

/// Writes every source that is not there already into a claimed folder, and removes those of earlier selections.
/// Throws InputError for a file that cannot be written, DeclarationError for two kernels with one symbol.
void write_sources(std::span<const Unit> units, const std::filesystem::path& folder,
                   std::string_view extension);

/// Removes the regular files in `folder` whose names are not in `kept`; a folder that is not there is empty.
void remove_others(const std::filesystem::path& folder, std::span<const std::string> kept);

} // namespace fmha::generator
