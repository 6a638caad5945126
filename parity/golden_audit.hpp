#pragma once

#include "parity/golden_file.hpp"
#include "parity/report.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace fmha::parity {

/// The subject of an audit; empty lists mean everything that the architecture files or the golden folder know.
struct GoldenScope {
    std::vector<catalog::RuleSet> rules;
    std::vector<ArchName> archs;
    bool with_sweep = true; ///< the sweep has millions of names and takes longer than all others together
};

/// Whether an architecture file says anything about a rule set. `claim` and `stored` are flavours of one
/// part.
bool has_rules(const arch::ArchTables& arch, catalog::RuleSet rules);

/// Compares the present lists of the rule sets with the golden files. Each changed list is a failure that gives
/// the old and the new value; the names that were lost and gained follow with the rule or table entry
/// responsible. A combination without golden file, or a golden file without architecture, is a failure.
AuditReport audit_golden(const arch::ArchSet& archs, const std::filesystem::path& directory,
                         const GoldenScope& scope, const OnCheck& on_check = {});

/// Writes the facts of today as golden files and records the reason in each file that changed. Returns one
/// sentence for each file. Throws InputError for an empty reason. `date` is written as it is.
std::vector<std::string> accept_golden(const arch::ArchSet& archs, const std::filesystem::path& directory,
                                       const GoldenScope& scope, const std::string& reason,
                                       const std::string& date);

/// The reasons for which `why` lists or does not list a name of `request`, as one sentence.
std::string cause_sentence(const arch::ArchSet& archs, const catalog::Request& request,
                           const std::string& name);

} // namespace fmha::parity
