#include "kernels/catalog/house/house.hpp"
#include "kernels/catalog/tables/walk.hpp"

#include <fmt/format.h>

namespace fmha::catalog::house {

using namespace tables;

namespace {

/// Collects the fates of the candidates that carry one name.
class Inquiry {
  public:
    Inquiry(const Request& request, const arch::Hardware& hardware, Why& why)
        : request_(request), hardware_(hardware), why_(why) {}

    /// `tables` gives the table entries that `candidate` comes from.
    template <class Tables>
    void ask(const KernelConfig& config, const KernelConfig& candidate, std::span<const Rule* const> rules,
             const Tables& tables) {
        // Nearly all of the candidates, a hundred thousand and more, begin otherwise.
        shown_.clear();
        append_start(hardware_.limits.arch, config.signature, shown_);
        if (!why_.name.starts_with(shown_)) return;
        const KernelConfig kernel = finished(config, hardware_.limits.arch);
        shown_.clear();
        house::append_name(RuleSet::house, kernel, shown_);
        if (shown_ != why_.name) return;
        std::vector<WhyStep> steps = tables();
        bool removed = false;
        const auto step = [&](WhyStep::Kind kind, std::string_view id, std::string text, bool removes) {
            removed = removed || removes;
            steps.push_back({kind, std::string(id), std::move(text), removes});
        };
        step(WhyStep::Kind::rule, "HW", std::string(hardware_rule), !hardware_has(hardware_, candidate));
        for (const Rule* rule : rules)
            step(WhyStep::Kind::rule, rule->id, std::string(rule->says), !rule->accepts(candidate));
        step(WhyStep::Kind::option, "profile", fmt::format("profile {}", profile_name(request_.profile)),
             !keeps(request_.profile, kernel));
        step(WhyStep::Kind::option, "family", "the families asked for",
             !request_.families.has(kernel.signature.family));
        if (why_.config && (why_.listed || removed)) return;
        why_.config = kernel;
        why_.steps = std::move(steps);
        why_.listed = !removed;
    }

  private:
    const Request& request_;
    const arch::Hardware& hardware_;
    Why& why_;
    std::string shown_;
};

void ask_target(const arch::ArchSet& archs, const Request& request, const ArchName& target, Why& why) {
    Inquiry inquiry(request, archs.at(target).hardware(), why);
    for (const FamilyTables& tables : forward_tables(archs, target, FamilySet{}))
        walk_forward(tables.group, tables.family, request, false,
                     [&](const KernelConfig& candidate, const Origin& origin) {
                         const auto ask = [&](const KernelConfig& config) {
                             inquiry.ask(config, candidate, tables.group.tables.rules, [&] {
                                 return std::vector<WhyStep>{
                                     {WhyStep::Kind::table, origin.tile->source, "the tile", false},
                                     {WhyStep::Kind::table, origin.pipeline->source,
                                      fmt::format("the pipeline and its features, {}", origin.pipeline->id),
                                      false}};
                             });
                         };
                         ask(candidate);
                         if (has_global_load_twin(candidate)) ask(global_load_twin_of(candidate));
                     });
    const auto group = backward_tables(archs, target);
    if (!group) return;
    Request walked = request;
    walked.masks = MaskVocabulary::simplified;
    walk_backward(*group, walked, [&](const KernelConfig& trait, const BackwardTile& tile) {
        const auto ask = [&](const KernelConfig& config) {
            inquiry.ask(config, trait, group->tables.rules, [&] {
                return std::vector<WhyStep>{{WhyStep::Kind::table, tile.source, "the tile", false}};
            });
        };
        ask(dq_dk_dv_of(trait));
        ask(dot_do_o_of(trait));
        if (trait.algorithm.max_seq_len_q == 0) ask(convert_dq_of(trait));
    });
}

} // namespace

Why why(const arch::ArchSet& archs, const Request& request, std::string_view name) {
    Why answer;
    answer.name = std::string(name);
    for (const ArchName& target : request.targets) ask_target(archs, request, target, answer);
    return answer;
}

} // namespace fmha::catalog::house
