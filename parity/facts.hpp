#pragma once

#include "kernels/arch/arch.hpp"
#include "kernels/catalog/catalog.hpp"

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fmha::parity {

/// The facts that are remembered of one list of names. Digests are those of NameDigest; both are empty where a list is
/// counted only, and for a list without kernels.
struct Fact {
    std::int64_t kernels = 0;
    std::string sorted;   ///< names sorted by byte value
    std::string emission; ///< names in the order of enumeration
    friend bool operator==(const Fact&, const Fact&) = default;
};

/// One list: a family of a profile, with one way to spell masks.
struct FactKey {
    catalog::MaskVocabulary masks = catalog::MaskVocabulary::simplified;
    KernelFamily family = KernelFamily::fwd;
    catalog::ProfileId profile = catalog::ProfileId::ck_default;
    friend auto operator<=>(const FactKey&, const FactKey&) = default;
};

/// One value of one column of the catalogue within a family.
struct ValueKey {
    KernelFamily family = KernelFamily::fwd;
    std::string column, value;
    friend auto operator<=>(const ValueKey&, const ValueKey&) = default;
};

/// Everything that is remembered of a rule set on an architecture.
struct Facts {
    catalog::RuleSet rules = catalog::RuleSet::ck;
    ArchName arch;
    std::map<FactKey, Fact> lists;
    /// Records that break a validation rule (rule id -> records), over the list that `reference_request` asks
    /// for.
    std::map<std::string, std::int64_t> violations;
    /// Facts that names do not show, or that lists without remembered names lack: for each family and column of
    /// the catalogue, how many records of that list have each value.
    std::map<ValueKey, std::int64_t> values;
    friend bool operator==(const Facts&, const Facts&) = default;
};

/// The widest list of a rule set on an architecture: profile `all` (`ck_default` for the sweep, whose other
/// profiles are counted only), simplified masks. Its names are kept beside the facts, except the sweep's.
catalog::Request reference_request(catalog::RuleSet rules, const ArchName& arch);

/// False for the sweep: millions of names are remembered by digest alone.
bool keeps_names(catalog::RuleSet rules);

/// Enumerates every profile (and both mask vocabularies where the rule set has two) and gathers the facts.
Facts collect_facts(const arch::ArchSet& archs, catalog::RuleSet rules, const ArchName& arch);

/// The names of a request, in order of emission.
std::vector<std::string> names_of(const arch::ArchSet& archs, const catalog::Request& request);

} // namespace fmha::parity
