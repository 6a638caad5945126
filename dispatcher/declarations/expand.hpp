#pragma once

#include "dispatcher/declarations/kernel_set.hpp"
#include "kernels/arch/arch.hpp"

#include <map>
#include <string>
#include <vector>

namespace fmha {

/// The kernels that a set stands for.
struct Expansion {
    std::vector<KernelConfig> kernels; ///< without duplicates, ascending within a declaration
    std::size_t combinations = 0;      ///< that wildcards gave
    /// Combinations that were left out, by the first rule that they break.
    std::map<std::string, std::size_t> skipped;
};

/// Expands every declaration of the set against the architecture files. A wildcard takes the values that rule set
/// `house` has: tiles those of the same family, data type and head dimensions, pipelines those of the same family
/// and data type, everything else those of the same family. Combinations that break a validation rule are skipped
/// and counted. Throws DeclarationError for an explicit declaration that breaks a rule, naming it, for an unknown
/// architecture, and for a wildcard declaration that leaves nothing.
Expansion expand(const KernelSet& set, const arch::ArchSet& archs);

} // namespace fmha
