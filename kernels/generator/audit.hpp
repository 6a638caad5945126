#pragma once

#include "kernels/arch/arch.hpp"
#include "kernels/generator/build.hpp"

#include <string>
#include <vector>

namespace fmha::generator {

/// A kernel that breaks a limit.
struct AuditFinding {
    std::string name;
    std::string sentence; ///< the number and the limit
    friend bool operator==(const AuditFinding&, const AuditFinding&) = default;
};

/// What is wrong with a kernel that uses `used`: scratch, LDS or registers beyond the architecture's, no matrix instruction
/// although it multiplies matrices, or not those of its pipeline. Empty: nothing.
std::vector<std::string> violations(const built::Resources& used, const arch::Hardware& hardware,
                                    const KernelConfig& config);

/// Fills in the resources of every kernel of a build, writes its manifest again, and returns the findings, in order.
/// Throws InputError when a tool that the audit needs is missing or says nothing about a kernel.
std::vector<AuditFinding> audit(BuildResult& result, const BuildTools& tools, const arch::ArchSet& archs,
                                const std::filesystem::path& folder);

/// How many of the audited kernels spill, together and for every architecture, family, data type, head dimension and tile that
/// has one that does. A kernel spills when it uses scratch or when the compiler says so of its vector registers.
struct SpillRow {
    std::string what;
    std::size_t spilling = 0, audited = 0;
    std::int64_t most_scratch = 0; ///< bytes
};
std::vector<SpillRow> spills(const built::Manifest& manifest);

/// The audited kernels of a build that spill, in order.
std::vector<const built::BuiltKernel*> spilling_kernels(const built::Manifest& manifest);

/// The audited kernels that took longest to compile, the slowest first, at most `most`.
std::vector<const built::BuiltKernel*> slowest_kernels(const built::Manifest& manifest, std::size_t most);

} // namespace fmha::generator
