#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace fmha::harness::test {

/// Why a mutant is known to survive.
struct KnownSurvivor {
    bool equivalent = false; ///< with a proof; else nobody has killed it yet
    std::string why;
};

/// Of a table: lines "name<tab>equivalent<tab>proof" or "name<tab>open<tab>remark", and comments behind '#'. A name is a
/// mutant's, or a pattern of the shell for several. Throws InputError with the file, the line and what is wrong.
std::map<std::string, KnownSurvivor> read_survivors(const std::filesystem::path& path);

/// The entry of `name`; nullptr when there is none.
const KnownSurvivor* find_survivor(const std::map<std::string, KnownSurvivor>& known,
                                   const std::string& name);

} // namespace fmha::harness::test
