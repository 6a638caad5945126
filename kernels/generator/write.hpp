#pragma once

#include "kernels/generator/source.hpp"

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace fmha::generator {

/// An output folder while this process works in it. Other processes that claim it wait until this one has ended or the claim has: they would
/// remove each other's sources, and the last one's manifest would hide the kernels of the first.
class ClaimedFolder {
  public:
    /// Told whom this process waits for.
    using Waiting = std::function<void(const std::string& sentence)>;

    /// Makes the folder, or takes one that was made here before. Files of earlier runs are removed from it, so throws InputError for a
    /// folder with content of somebody else; also when `stop` turns true while it waits.
    explicit ClaimedFolder(const std::filesystem::path& folder, const Waiting& waiting = {},
                           const std::function<bool()>& stop = {});
    ~ClaimedFolder();
    ClaimedFolder(const ClaimedFolder&) = delete;
    ClaimedFolder& operator=(const ClaimedFolder&) = delete;

  private:
    int descriptor_ = -1; ///< of the file that marks such folders; its lock is the claim
};

/// Where the source of a unit lies inside an output folder.
std::string source_file(const Unit& unit, std::string_view extension);

/// Writes every source that is not there already into a claimed folder, and removes those of earlier selections.
/// Throws InputError for a file that cannot be written, DeclarationError for two kernels with one symbol.
void write_sources(std::span<const Unit> units, const std::filesystem::path& folder,
                   std::string_view extension);

/// Removes the regular files in `folder` whose names are not in `kept`; a folder that is not there is empty.
void remove_others(const std::filesystem::path& folder, std::span<const std::string> kept);

} // namespace fmha::generator
