#include "kernels/catalog/ck/ck.hpp"
#include "kernels/catalog/ck/filters.hpp"
#include "kernels/catalog/ck/groups.hpp"
#include "kernels/catalog/ck/names.hpp"
#include "kernels/catalog/ck/receipts.hpp"
#include "kernels/catalog/tables/first_seen.hpp"
#include "kernels/catalog/tables/walk.hpp"

#include <algorithm>

namespace fmha::catalog::ck {

using namespace tables;

namespace {

bool passes(std::span<const Rule* const> rules, const KernelConfig& candidate) {
    return std::all_of(rules.begin(), rules.end(),
                       [&](const Rule* rule) { return rule->accepts(candidate); });
}

bool request_keeps(const Request& request, const Filters& filters, const KernelConfig& candidate) {
    return optdim_keeps(request, candidate.signature.hdim_q) &&
           keeps(request.profile, request.masks, candidate) && filters.glob_keeps(candidate);
}

void enumerate_forward(const arch::ArchSet& archs, const Request& request, const Filters& filters,
                       KernelFamily family, Sink sink) {
    for (const ForwardGroup& group : forward_groups(archs, request, family))
        walk_forward(group, family, request, is_extended(request.profile),
                     [&](const KernelConfig& candidate, const Origin&) {
                         if (!passes(group.tables.rules, candidate) ||
                             !request_keeps(request, filters, candidate))
                             return;
                         sink(candidate);
                         if (has_global_load_twin(candidate)) sink(global_load_twin_of(candidate));
                     });
}

void enumerate_backward(const arch::ArchSet& archs, const Request& request, const Filters& filters,
                        Sink sink) {
    std::vector<KernelConfig> converts;
    const std::vector<BackwardGroup> groups = backward_groups(archs, request);
    const auto each_accepted = [&](const BackwardGroup& group, const auto& visit) {
        const auto accepted = [&](const KernelConfig& trait) {
            return passes(group.tables.rules, trait) && request_keeps(request, filters, trait);
        };
        walk_backward(group, request, [&](const KernelConfig& trait, const BackwardTile&) {
            if (accepted(trait)) visit(trait, accepted);
        });
    };
    // The three lists follow one another, so the traits are walked once for the small lists and once for the
    // large one.
    for (const BackwardGroup& group : groups) {
        FirstSeen dots;
        FirstSeen seen_converts;
        each_accepted(group, [&](const KernelConfig& trait, const auto&) {
            const KernelConfig dot = dot_do_o_of(trait);
            if (request.families.has(dot.signature.family) && dots.first(dot)) sink(dot);
            if (trait.algorithm.max_seq_len_q != 0) return;
            const KernelConfig convert = convert_dq_of(trait);
            if (request.families.has(convert.signature.family) && seen_converts.first(convert))
                converts.push_back(convert);
        });
    }
    if (request.families.has(KernelFamily::bwd_dq_dk_dv))
        for (const BackwardGroup& group : groups)
            each_accepted(group, [&](const KernelConfig& trait, const auto& accepted) {
                // Query padding does not reach this kernel: the unpadded trait came first, if there was one.
                if (trait.algorithm.pad.s) {
                    KernelConfig unpadded = trait;
                    unpadded.algorithm.pad.s = false;
                    if (accepted(unpadded)) return;
                }
                sink(dq_dk_dv_of(trait));
            });
    for (const KernelConfig& convert : converts) sink(convert);
}

} // namespace

void enumerate(const arch::ArchSet& archs, const Request& request, Sink sink) {
    const Filters filters(request);
    for (const KernelFamily family : forward_families)
        if (request.families.has(family)) enumerate_forward(archs, request, filters, family, sink);
    if (has_backward(request.families)) enumerate_backward(archs, request, filters, sink);
}

const RuleSetOps& ops() {
    static constexpr RuleSetOps table{RuleSet::ck, enumerate, append_name, why, rule_rows};
    return table;
}

} // namespace fmha::catalog::ck
