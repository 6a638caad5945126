#pragma once

#include "kernels/catalog/profile.hpp"

#include <cstdint>
#include <span>
#include <string_view>

namespace fmha::catalog::audit {

/// The rules that can keep a candidate kernel out of the sets `claim`, `stored` and `sweep`. A candidate carries one
/// bit per rule that removes it. The enumeration skips candidates with any bit, and the explanation of a missing name reports the
/// bits, so that both run the same code.
enum class AuditRule : std::uint8_t {
    logits_without_bias,
    dbias_with_bias,
    group_padding,
    page_layout,
    page_block,
    batch_only_tile,
    receipt_forward,
    receipt_splitkv,
    allow_data_type,
    allow_mode,
    allow_mask,
    allow_bias,
    allow_pipeline,
    allow_lse,
    allow_dropout,
    allow_logits,
    allow_sink,
    allow_paged_kv,
    head_dim_restriction,
    tile_m0_128,
    tile_h128,
    tile_h128_async_m0,
    tile_v3_m0,
    tile_trload,
    sweep_k0_hdim,
    sweep_warp_multiple,
    sweep_lds_async,
    sweep_lds,
    sweep_k0_divides,
    sweep_mfma,
    sweep_async_dma,
    sweep_gfx9,
    sweep_gfx950,
    sweep_mfma_first_class,
};

/// One bit per AuditRule.
using RuleBits = std::uint64_t;

constexpr RuleBits rule_bit(AuditRule rule) {
    return RuleBits{1} << static_cast<unsigned>(rule);
}

/// The bit of `rule` when the rule does not hold, else nothing.
constexpr RuleBits unless(bool holds, AuditRule rule) {
    return holds ? 0 : rule_bit(rule);
}

struct AuditRuleText {
    AuditRule rule;
    std::string_view id;       ///< stable, as printed by reports
    std::string_view families; ///< kernel families that it can touch, separated by commas
    std::string_view says;     ///< the demand of the rule, in one sentence

    bool touches(KernelFamily family) const;
    /// Whether the rule set knows the rule at all.
    bool belongs_to(RuleSet rules) const;
};

/// Every rule in order of its bit.
std::span<const AuditRuleText> audit_rules();

} // namespace fmha::catalog::audit
