#pragma once

#include "kernels/built/manifest.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

/// Spills that somebody accepted, with a reason: kernels of NVIDIA's mma.sync that need more registers than there are, and scratch that LLVM
/// sets aside without need. They may not grow unseen.
namespace fmha::generator {

/// Of one architecture, `<folder>/<arch>.txt`: lines of "bytes name", behind lines of "# date: reason".
struct SpillRecords {
    std::string reasons;                                      ///< those lines
    std::map<std::string, std::int64_t, std::less<>> kernels; ///< bytes of scratch a lane, by name
    bool every = false;                                       ///< any spill is allowed

    std::int64_t allowed(std::string_view name) const;
    friend bool operator==(const SpillRecords&, const SpillRecords&) = default;
};

/// None where there is no file. Throws InputError, with file and line, for an unreadable file.
SpillRecords read_spills(const std::filesystem::path& folder, const ArchName& arch);
void write_spills(const SpillRecords& records, const std::filesystem::path& folder, const ArchName& arch);

/// Writes the spills of the audited kernels of a build and keeps the records of others. Returns a sentence for each architecture.
/// Nothing is written where nothing changed.
std::vector<std::string> accept_spills(const built::Manifest& manifest, const std::filesystem::path& folder,
                                       const std::string& reason, const std::string& date);

} // namespace fmha::generator
