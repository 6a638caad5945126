#include "kernels/catalog/ck/ck.hpp"
#include "kernels/catalog/ck/filters.hpp"
#include "kernels/catalog/ck/groups.hpp"
#include "kernels/catalog/ck/names.hpp"
#include "kernels/catalog/ck/receipts.hpp"
#include "kernels/catalog/tables/walk.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace fmha::catalog::ck {

using namespace tables;

namespace {

/// Collects the fates of the candidates that carry one name.
class Inquiry {
  public:
    Inquiry(const Request& request, std::string_view name) : request_(request), filters_(request) {
        why_.name = std::string(name);
        wanted_ =
            name.substr(0, name.rfind(".cpp") == std::string_view::npos ? name.size() : name.rfind(".cpp"));
    }

    bool is_wanted(const KernelConfig& config) {
        shown_.clear();
        append_name({RuleSet::ck, request_.masks}, config, shown_);
        shown_.resize(shown_.size() - 4); // .cpp
        return shown_ == wanted_;
    }

    /// `config` carries the name; `candidate` is the form of it that rules and profiles see.
    void found(const KernelConfig& config, const KernelConfig& candidate, std::span<const Rule* const> rules,
               std::vector<WhyStep> tables) {
        std::vector<WhyStep> steps = std::move(tables);
        bool removed = false;
        const auto step = [&](WhyStep::Kind kind, std::string id, std::string text, bool removes) {
            removed = removed || removes;
            steps.push_back({kind, std::move(id), std::move(text), removes});
        };
        for (const Rule* rule : rules)
            step(WhyStep::Kind::rule, std::string(rule->id), std::string(rule->says),
                 !rule->accepts(candidate));
        step(WhyStep::Kind::option, "profile", fmt::format("profile {}", profile_name(request_.profile)),
             !keeps(request_.profile, request_.masks, candidate));
        if (!request_.optdim.empty())
            step(WhyStep::Kind::option, "optdim",
                 fmt::format("head dimensions asked for: {}", fmt::join(request_.optdim, ", ")),
                 !optdim_keeps(request_, candidate.signature.hdim_q));
        if (!filters_.glob_keeps(candidate))
            step(WhyStep::Kind::option, "filter", "the glob patterns of the request", true);
        if (!request_.families.has(config.signature.family))
            step(WhyStep::Kind::option, "family", "the families asked for", true);
        // Several candidates may carry one name (backward traits); one survivor lists it.
        if (why_.config && (why_.listed || removed)) return;
        why_.config = config;
        why_.steps = std::move(steps);
        why_.listed = !removed;
    }

    Why take() { return std::move(why_); }
    const Why& so_far() const { return why_; }

  private:
    const Request& request_;
    Filters filters_;
    Why why_;
    std::string wanted_, shown_;
};

void ask_forward(const arch::ArchSet& archs, const Request& request, KernelFamily family, Inquiry& inquiry) {
    for (const ForwardGroup& group : forward_groups(archs, request, family))
        walk_forward(group, family, request, /*extended=*/true,
                     [&](const KernelConfig& candidate, const Origin& origin) {
                         const auto ask = [&](const KernelConfig& config) {
                             if (!inquiry.is_wanted(config)) return;
                             std::vector<WhyStep> tables{
                                 {WhyStep::Kind::table, origin.tile->source, "the tile", false},
                                 {WhyStep::Kind::table, origin.pipeline->source,
                                  "the pipeline, its padding and features", false}};
                             if (origin.pipeline->only_extended)
                                 tables.push_back({WhyStep::Kind::option, "only_extended",
                                                   "this pipeline entry belongs to profile ck_extended only",
                                                   !is_extended(request.profile)});
                             inquiry.found(config, candidate, group.tables.rules, std::move(tables));
                         };
                         ask(candidate);
                         if (has_global_load_twin(candidate)) ask(global_load_twin_of(candidate));
                     });
}

void ask_backward(const arch::ArchSet& archs, const Request& request, Inquiry& inquiry) {
    for (const BackwardGroup& group : backward_groups(archs, request))
        walk_backward(group, request, [&](const KernelConfig& trait, const BackwardTile& tile) {
            const auto ask = [&](const KernelConfig& config) {
                if (inquiry.is_wanted(config))
                    inquiry.found(config, trait, group.tables.rules,
                                  {{WhyStep::Kind::table, tile.source, "the tile", false}});
            };
            ask(dq_dk_dv_of(trait));
            ask(dot_do_o_of(trait));
            if (trait.algorithm.max_seq_len_q == 0) ask(convert_dq_of(trait));
        });
}

} // namespace

Why why(const arch::ArchSet& archs, const Request& request, std::string_view name) {
    Inquiry inquiry(request, name);
    for (const KernelFamily family : forward_families) ask_forward(archs, request, family, inquiry);
    ask_backward(archs, request, inquiry);
    return inquiry.take();
}

} // namespace fmha::catalog::ck
