#pragma once

#include "kernels/built/manifest.hpp"
#include "kernels/generator/audit.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

/// What the kernels of whole lists took of a GPU, by family, data type, head dimensions, pipeline and tile: facts that somebody
/// accepted, with a reason. A kernel more or less, a spill or a register more is seen.
namespace fmha::generator {

/// The kernels of one group: how many there are, how many of them spill, and the most that one of them takes.
struct GroupFacts {
    std::int64_t kernels = 0, spilling = 0;
    std::int64_t scratch_bytes = 0; ///< a lane
    std::int64_t vgprs = 0, agprs = 0;
    std::int64_t lds_bytes = 0; ///< a block
    friend bool operator==(const GroupFacts&, const GroupFacts&) = default;
};

/// Of one architecture, `<folder>/<arch>.txt`: a line "compiler …", lines of "# date: reason", then for each group its six numbers
/// and its name (`tile_group`).
struct ListFacts {
    std::string compiler, reasons;
    std::map<std::string, GroupFacts> groups;
};

/// None where there is no file. Throws InputError, with file and line, for an unreadable file.
ListFacts read_facts(const std::filesystem::path& folder, const ArchName& arch);

struct FactsVerdict {
    std::vector<AuditFinding> findings; ///< of a group, by its name behind the architecture's
    std::vector<std::string> notes;
    std::size_t judged = 0; ///< groups
};

/// Judges the audited kernels of a build by the facts. With `whole_families` a family that the build has is there with all of its
/// kernels, so that a lost kernel is seen; otherwise a group may have fewer than its facts. Resources are judged where the
/// compiler is that of the facts, and a note says so where it is not.
FactsVerdict against_facts(const built::Manifest& manifest, const std::filesystem::path& folder,
                           bool whole_families);

/// Writes the groups of a build's families, which it has whole, and keeps those of other families. Returns a sentence for each
/// architecture. Throws InputError where other families stand there of another compiler.
std::vector<std::string> accept_facts(const built::Manifest& manifest, const std::filesystem::path& folder,
                                      const std::string& reason, const std::string& date);

} // namespace fmha::generator
