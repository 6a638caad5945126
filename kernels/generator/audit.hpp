#pragma once

#include "kernels/arch/arch.hpp"
#include "kernels/generator/build.hpp"
#include "kernels/generator/spill_records.hpp"

#include <map>
#include <string>
#include <vector>

namespace fmha::generator {

/// A kernel that breaks a limit.
struct AuditFinding {
    std::string name;
    std::string sentence; ///< the number and the limit
    friend bool operator==(const AuditFinding&, const AuditFinding&) = default;
};

/// The faults of a kernel that uses `used`: more than `scratch` bytes of it a lane, LDS or registers beyond the architecture's, no
/// matrix instruction although it multiplies matrices. Empty: nothing.
std::vector<std::string> violations(const built::Resources& used, const arch::Hardware& hardware,
                                    const KernelConfig& config, std::int64_t scratch = 0);

/// Accepted spills by architecture; none are allowed where there is no entry.
using SpillsByArch = std::map<std::string, SpillRecords, std::less<>>;

/// Fills in the resources of every kernel of a build, writes its manifest again, and returns the findings, in order. `options` are
/// those of the build. When their `stop` says true, the audit ends: kernels are left without resources, and the result is interrupted.
/// Throws InputError when a tool that the audit needs is missing or says nothing about a kernel.
std::vector<AuditFinding> audit(BuildResult& result, const BuildTools& tools, const arch::ArchSet& archs,
                                const BuildOptions& options, const SpillsByArch& recorded = {});

/// A kernel spills when it uses scratch or when the compiler says so of its vector registers.
bool spilling(const built::Resources& used);

/// Family, data type, head dimensions, pipeline and tile of a kernel, in words: kernels with the same ones are a group.
std::string tile_group(const KernelConfig& config);

/// How many of the audited kernels spill, together and for every architecture and group that has one that does.
struct SpillRow {
    std::string what;
    std::size_t spilling = 0, audited = 0;
    std::int64_t most_scratch = 0; ///< bytes
};
std::vector<SpillRow> spills(const built::Manifest& manifest);

/// The way out for a build whose spills to scratch no record allows, in one sentence; empty when no kernel has any.
std::string advice_without_records(const built::Manifest& manifest);

/// The audited kernels of a build that spill, in order.
std::vector<const built::BuiltKernel*> spilling_kernels(const built::Manifest& manifest);

/// The audited kernels that took longest to compile, the slowest first, at most `most`.
std::vector<const built::BuiltKernel*> slowest_kernels(const built::Manifest& manifest, std::size_t most);

} // namespace fmha::generator
