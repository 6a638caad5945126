#include "kernels/generator/selection.hpp"

#include "dispatcher/types/family_traits.hpp"
#include "kernels/catalog/catalog.hpp"
#include "kernels/targets/hip/cannot_execute.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

namespace fmha::generator {
namespace {

/// The shape of the instruction that each product of the kernel uses must be one of the architecture's, for its type.
std::optional<RuleFinding> missing_instruction(const arch::Hardware& hardware, const KernelConfig& config) {
    const GemmTriples& warp = config.algorithm.warp;
    const auto type = static_cast<unsigned>(config.signature.data_type);
    for (const auto& [m, n, k] : {std::tuple{warp.m0, warp.n0, warp.k0}, {warp.m1, warp.n1, warp.k1}}) {
        const auto has = [&, m = m, n = n, k = k](const arch::MatrixInstruction& i) {
            return i.m == m && i.n == n && k % i.k == 0 && (i.data_types >> type & 1U) != 0;
        };
        if (!std::ranges::any_of(hardware.matrix_instructions, has))
            return RuleFinding{"HW", Severity::error,
                               fmt::format("{} has no matrix instruction {}x{} for {} whose depth divides {}",
                                           config.arch.view(), m, n, to_string(config.signature.data_type),
                                           k)};
    }
    return std::nullopt;
}

/// The first validation rule, or instruction that the hardware lacks.
std::optional<RuleFinding> invalid(const arch::ArchSet& archs, const KernelConfig& config) {
    const arch::Hardware& hardware = archs.at(config.arch).hardware();
    for (RuleFinding& finding : validate(config, hardware.limits))
        if (finding.severity == Severity::error) return std::move(finding);
    return api_traits_of(config.signature.family).contiguous() ? missing_instruction(hardware, config)
                                                               : std::nullopt;
}

} // namespace

NamedKernel named(const KernelConfig& config) {
    return {catalog::name_of(catalog::RuleSet::house, config), config};
}

std::optional<RuleFinding> forbidden(const arch::ArchSet& archs, const KernelConfig& config) {
    if (auto finding = invalid(archs, config)) return finding;
    catalog::Request request;
    request.rules = catalog::RuleSet::house;
    request.targets = {config.arch};
    const catalog::Why why = catalog::why(archs, request, named(config).name);
    if (why.listed || !why.config) return std::nullopt;
    static const std::vector<catalog::RuleRow> rules = catalog::rules_of(catalog::RuleSet::house);
    for (const catalog::WhyStep& step : why.steps)
        for (const catalog::RuleRow& rule : rules)
            if (step.removes && step.id == rule.id)
                return RuleFinding{rule.id, Severity::error, std::string(rule.says)};
    return std::nullopt;
}

std::optional<std::string> declined(const KernelConfig& config) {
    return hip_target::cannot_execute(config);
}

Selection select(std::span<const KernelConfig> configs) {
    Selection selection;
    for (const KernelConfig& config : configs) {
        if (auto reason = declined(config))
            selection.declined.push_back({named(config), std::move(*reason)});
        else
            selection.kernels.push_back(named(config));
    }
    return selection;
}

Selection select_valid(const arch::ArchSet& archs, std::span<const KernelConfig> configs) {
    Selection selection;
    std::unordered_set<std::string> names;
    for (const KernelConfig& config : configs) {
        NamedKernel kernel = named(config);
        if (const auto rule = invalid(archs, config))
            selection.declined.push_back(
                {std::move(kernel), fmt::format("refused by {}: {}", rule->id, rule->message)});
        else if (auto reason = declined(config))
            selection.declined.push_back({std::move(kernel), std::move(*reason)});
        else if (!names.insert(kernel.name).second)
            selection.declined.push_back(
                {std::move(kernel), "the same kernel as an earlier one of the list"});
        else
            selection.kernels.push_back(std::move(kernel));
    }
    return selection;
}

} // namespace fmha::generator
