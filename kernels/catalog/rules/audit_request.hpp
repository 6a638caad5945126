#pragma once

#include "kernels/catalog/catalog.hpp"
#include "kernels/catalog/rules/selection.hpp"

namespace fmha::catalog::audit {

/// Upstream's numbers behind a profile: those of every member of a group; `all` keeps everything.
ReceiptFilter receipts_of(const Profile& profile);

/// nullopt: upstream does not have the family.
std::optional<SweepVariant> variant_of(KernelFamily family);

/// The subject of a request, one selection a variant, in the order in which a whole architecture is listed.
/// Throws InputError for options that these rule sets do not have.
std::vector<Selection> selections_of(const Request& request);

/// Passes on the kernels of the families that the request asks for.
CandidateSink asked_families(const Request& request, const Sink& sink);

/// The rules of one of these rule sets, for listings.
std::vector<RuleRow> rule_rows(RuleSet rules);

/// Where a kernel of the set comes from, for explanations: table entries of its tile and of its features.
using Origins = std::function<std::vector<WhyStep>(const KernelConfig&)>;
/// Runs one selection of the set.
using Walk = std::function<void(const Selection&, const CandidateSink&)>;

/// Candidates with the name `name`: the entries that produce them and the rules that remove them. `name` must be complete.
/// Adds to `answer`; a listed candidate wins over removed ones.
void explain(const Request& request, const Walk& walk, const Origins& origins, Why& answer);

/// The step that names the feature product of a kernel.
WhyStep feature_step(const KernelConfig& config);

/// The first tokens of a name, as far as they can be read.
struct NameHead {
    std::optional<KernelFamily> family;
    std::optional<DataType> data_type;
    std::optional<std::array<std::int64_t, 2>> head; ///< hdim_q, hdim_v
};
NameHead read_name_head(std::string_view name);

} // namespace fmha::catalog::audit
