#pragma once

#include "parity/facts.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace fmha::parity {

/// A change of the facts that somebody accepted.
struct Acceptance {
    std::string date; ///< "2026-05-17"
    std::string reason;
    std::int64_t changes = 0; ///< facts that changed, came or went
};

/// One golden file, `<directory>/<rules>/<arch>.json`, and the listing `<arch>.names` beside it.
struct GoldenFile {
    Facts facts;
    std::vector<Acceptance> accepted;
    std::vector<std::string> names; ///< of the reference request, sorted; empty for rule sets that keep none
};

/// nullopt when there is no such file. Throws InputError, with file and place, for a file that cannot be read
/// and for a listing that the facts do not describe.
std::optional<GoldenFile> read_golden(const std::filesystem::path& directory, catalog::RuleSet rules,
                                      const ArchName& arch);

/// Writes both files. Their text depends on the content alone; a changed fact changes one line.
void write_golden(const std::filesystem::path& directory, const GoldenFile& golden);

/// (rules, arch) of every golden file in the directory, sorted.
std::vector<std::pair<catalog::RuleSet, ArchName>> golden_files(const std::filesystem::path& directory);

} // namespace fmha::parity
