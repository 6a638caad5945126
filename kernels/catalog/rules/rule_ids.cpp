#include "kernels/catalog/rules/rule_ids.hpp"

#include <array>

namespace fmha::catalog::audit {

namespace {

using enum AuditRule;

constexpr std::array<AuditRuleText, 34> texts{{
    {logits_without_bias, "FEATURE-LOGITS-BIAS", "fwd,fwd_splitkv,fwd_pagedkv,batch_prefill",
     "a kernel with logits soft cap has no bias"},
    {dbias_with_bias, "FEATURE-DBIAS", "bwd_dq_dk_dv", "a bias gradient needs an elementwise bias"},
    {group_padding, "FEATURE-GROUP-PAD",
     "fwd,fwd_splitkv,fwd_splitkv_combine,fwd_pagedkv,bwd_dot_do_o,bwd_convert_dq",
     "group mode needs the sequence paddings of its family"},
    {page_layout, "FEATURE-PAGE-LAYOUT", "batch_prefill", "page size 1 exists with the linear layout only"},
    {page_block, "FEATURE-PAGE-BLOCK", "batch_prefill", "kv_blockscale needs pages of at least n0 tokens"},
    {batch_only_tile, "FEATURE-BATCH-TILE", "bwd_dq_dk_dv", "this backward tile exists in batch mode only"},
    {receipt_forward, "RECEIPT-FORWARD", "fwd,fwd_pagedkv",
     "the numeric filter of the profile keeps the kernel"},
    {receipt_splitkv, "RECEIPT-SPLITKV", "fwd_splitkv", "the numeric filter of the profile keeps the kernel"},
    {allow_data_type, "ALLOW-DATA-TYPE", "all", "the list of data types has the kernel's"},
    {allow_mode, "ALLOW-MODE",
     "fwd,fwd_splitkv,fwd_splitkv_combine,fwd_pagedkv,bwd_dot_do_o,bwd_dq_dk_dv,bwd_convert_dq",
     "the configuration's list of mode values has the kernel's"},
    {allow_mask, "ALLOW-MASK", "fwd,fwd_splitkv,fwd_pagedkv,batch_prefill,bwd_dq_dk_dv",
     "the configuration's list of mask values has the kernel's"},
    {allow_bias, "ALLOW-BIAS", "fwd,fwd_splitkv,fwd_pagedkv,batch_prefill,bwd_dq_dk_dv",
     "the configuration's list of bias values has the kernel's"},
    {allow_pipeline, "ALLOW-PIPELINE", "fwd", "the configuration's list of pipeline values has the kernel's"},
    {allow_lse, "ALLOW-LSE", "fwd", "the configuration's list of lse values has the kernel's"},
    {allow_dropout, "ALLOW-DROPOUT", "fwd", "the configuration's list of dropout values has the kernel's"},
    {allow_logits, "ALLOW-LOGITS", "fwd,fwd_splitkv",
     "the configuration's list of logits values has the kernel's"},
    {allow_sink, "ALLOW-SINK", "fwd,fwd_splitkv", "the configuration's list of sink values has the kernel's"},
    {allow_paged_kv, "ALLOW-PAGED-KV", "fwd_splitkv",
     "the configuration's list of paged_kv values has the kernel's"},
    {head_dim_restriction, "ALLOW-HEAD-DIM", "fwd,fwd_splitkv,fwd_pagedkv,fwd_appendkv,batch_prefill",
     "the head dimensions of the request have the kernel's"},
    {tile_m0_128, "RULES-M0", "fwd", "head dimensions other than 128x128 take m0 = 128 only"},
    {tile_h128, "RULES-H128", "fwd", "128x128 takes n0 = 128 only, and no k0 = 64 outside qr_async"},
    {tile_h128_async_m0, "RULES-H128-ASYNC", "fwd", "qr_async on 128x128 takes m0 = 128 only"},
    {tile_v3_m0, "RULES-V3-M0", "fwd", "m0 = 256 belongs to qr_async_trload_v3 and to nothing else"},
    {tile_trload, "RULES-TRLOAD", "fwd",
     "qr_async_trload takes 64x64 and 128x128, the latter without n0 = 128"},
    {sweep_k0_hdim, "SWEEP-K0-HDIM", "fwd,fwd_splitkv,fwd_pagedkv,batch_prefill", "k0 is at most hdim_q"},
    {sweep_warp_multiple, "SWEEP-WARP-MULTIPLE", "fwd,fwd_splitkv,fwd_pagedkv,batch_prefill",
     "m0, n0 and k0 are multiples of the warp tile"},
    {sweep_lds_async, "SWEEP-LDS-ASYNC", "fwd",
     "three stages of K or V fit the LDS limit of the async pipelines"},
    {sweep_lds, "SWEEP-LDS", "fwd,fwd_splitkv,fwd_pagedkv,batch_prefill",
     "(m0 + n0) k0 elements fit the LDS limit"},
    {sweep_k0_divides, "SWEEP-K0-DIVIDES", "fwd", "k0 divides hdim_q"},
    {sweep_mfma, "SWEEP-MFMA", "fwd",
     "qr at hdim 256 issues a multiple of eight matrix instructions per wave"},
    {sweep_async_dma, "SWEEP-ASYNC-DMA", "fwd", "an n0 by k0 block is a whole number of asynchronous copies"},
    {sweep_gfx9, "SWEEP-GFX9", "fwd", "qr, qr_async and qs take the m0, n0 and k0 of the gfx9 tables"},
    {sweep_gfx950, "SWEEP-GFX950", "fwd", "qr_async_trload and its v3 take the tiles of gfx950"},
    {sweep_mfma_first_class, "SWEEP-MFMA-FIRST", "fwd",
     "the MFMA rule also holds for the first warp tile of the data type"},
}};

constexpr bool in_bit_order() {
    for (std::size_t i = 0; i < texts.size(); ++i)
        if (static_cast<std::size_t>(texts[i].rule) != i) return false;
    return true;
}
static_assert(in_bit_order());

} // namespace

bool AuditRuleText::touches(KernelFamily family) const {
    if (families == "all") return true;
    std::string_view rest = families;
    while (!rest.empty()) {
        const std::size_t comma = rest.find(',');
        if (rest.substr(0, comma) == to_string(family)) return true;
        if (comma == std::string_view::npos) break;
        rest.remove_prefix(comma + 1);
    }
    return false;
}

bool AuditRuleText::belongs_to(RuleSet rules) const {
    if (id.starts_with("SWEEP-")) return rules == RuleSet::sweep;
    if (rule == tile_h128_async_m0) return rules == RuleSet::stored;
    if (id.starts_with("RULES-")) return rules == RuleSet::claim || rules == RuleSet::stored;
    return true;
}

std::span<const AuditRuleText> audit_rules() {
    return texts;
}

} // namespace fmha::catalog::audit
