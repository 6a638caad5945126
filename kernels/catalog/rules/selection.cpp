#include "kernels/catalog/rules/selection.hpp"

#include <algorithm>

namespace fmha::catalog::audit {

namespace {

bool forward_receipt(int receipt, DataType type, const Feature& f) {
    switch (receipt) {
    case 2:
        return is_half(type) && f.bias != BiasType::elementwise && f.qscale == QScale::no_scale && !f.skip &&
               !f.sink;
    case 4:
        return is_half(type) && f.bias != BiasType::alibi && f.qscale == QScale::no_scale && !f.skip &&
               !f.logits;
    case 100:
    case 200:
    case 600:
        return is_half(type) || type == DataType::fp8bf16;
    case 800:
        return type == DataType::fp32 && !f.skip && !f.logits;
    case 888:
        return type == DataType::fp8bf16 || type == DataType::fp8fp32;
    // Names such as flash_bwd, aiter_bwd_batch or fp32_min have no filter of their own here.
    default:
        return type != DataType::fp32;
    }
}

bool splitkv_receipt(int receipt, DataType type, const Feature& f) {
    switch (receipt) {
    case 2:
        return is_half(type) && f.bias != BiasType::elementwise && !f.squant && !f.sink;
    case 4:
        return is_half(type) && f.bias != BiasType::alibi && !f.squant && !f.sink;
    case 200:
    case 600:
        return is_half(type) && !f.squant;
    case 800:
    case 801:
        return type == DataType::fp32;
    default:
        return true;
    }
}

RuleBits allow_failures(const AllowLists& allow, SweepVariant variant, const Feature& f) {
    RuleBits failed = 0;
    if (variant == SweepVariant::appendkv) return failed;
    failed |= outside(allow.masks, static_cast<unsigned>(f.mask), AuditRule::allow_mask);
    failed |= outside(allow.biases, static_cast<unsigned>(f.bias), AuditRule::allow_bias);
    if (variant == SweepVariant::fwd) {
        failed |= outside(allow.pipelines, static_cast<unsigned>(f.pipeline), AuditRule::allow_pipeline);
        failed |= outside(allow.lse, f.lse ? 1 : 0, AuditRule::allow_lse);
        failed |= outside(allow.dropout, f.dropout ? 1 : 0, AuditRule::allow_dropout);
    }
    if (variant == SweepVariant::fwd || variant == SweepVariant::splitkv) {
        failed |= outside(allow.logits, f.logits ? 1 : 0, AuditRule::allow_logits);
        failed |= outside(allow.sink, f.sink ? 1 : 0, AuditRule::allow_sink);
    }
    if (variant == SweepVariant::splitkv)
        failed |= outside(allow.paged_kv, f.paged_kv ? 1 : 0, AuditRule::allow_paged_kv);
    return failed;
}

} // namespace

bool ReceiptFilter::keeps_forward(DataType type, const Feature& feature) const {
    return everything || std::ranges::any_of(
                             receipts, [&](int receipt) { return forward_receipt(receipt, type, feature); });
}

bool ReceiptFilter::keeps_pagedkv(DataType type, const Feature& feature) const {
    return everything || std::ranges::any_of(receipts, [&](int receipt) {
               return receipt == 0 || forward_receipt(receipt, type, feature);
           });
}

bool ReceiptFilter::keeps_splitkv(DataType type, const Feature& feature) const {
    return everything || std::ranges::any_of(receipts, [&](int receipt) {
               return receipt == 0 || splitkv_receipt(receipt, type, feature);
           });
}

bool ReceiptFilter::extends_qr() const {
    return !everything && std::ranges::find(receipts, 1) != receipts.end();
}

bool allows(const std::optional<std::vector<std::string>>& names, std::string_view name) {
    return !names || std::ranges::find(*names, name) != names->end();
}

void judge(std::vector<Feature>& features, DataType type, const Selection& selection) {
    for (Feature& feature : features) {
        feature.failed |= allow_failures(selection.allow, selection.variant, feature);
        switch (selection.variant) {
        case SweepVariant::fwd:
            feature.failed |=
                unless(selection.receipts.keeps_forward(type, feature), AuditRule::receipt_forward);
            break;
        case SweepVariant::pagedkv:
            feature.failed |=
                unless(selection.receipts.keeps_pagedkv(type, feature), AuditRule::receipt_forward);
            break;
        case SweepVariant::splitkv:
            feature.failed |=
                unless(selection.receipts.keeps_splitkv(type, feature), AuditRule::receipt_splitkv);
            break;
        case SweepVariant::appendkv:
        case SweepVariant::batch_prefill:
        case SweepVariant::bwd:
            break;
        }
    }
    prune(features, selection.keep_rejected);
}

void prune(std::vector<Feature>& features, bool keep_rejected) {
    if (!keep_rejected) std::erase_if(features, [](const Feature& feature) { return feature.failed != 0; });
}

void enumerate_combine(const Selection& selection, const std::vector<std::int64_t>& hdims,
                       const KernelConfig& base, RuleBits failed, const CandidateSink& sink) {
    KernelConfig config = base;
    config.signature.family = KernelFamily::fwd_splitkv_combine;
    for (const std::int64_t hdim : hdims) {
        config.signature.hdim_q = hdim;
        config.signature.hdim_v = hdim;
        config.algorithm.tile.m0 = 32;
        config.algorithm.tile.n0 = static_cast<std::int16_t>(hdim);
        config.algorithm.tile.n1 = 32;
        for (const Mode mode : modes) {
            config.signature.mode = mode;
            const RuleBits of_mode =
                failed | outside(selection.allow.modes, static_cast<unsigned>(mode), AuditRule::allow_mode);
            for (const Feature& feature : combine_features(config.signature.data_type)) {
                const RuleBits all = of_mode | group_needs_query(mode, feature.pad);
                if (all != 0 && !selection.keep_rejected) continue;
                apply(feature, config);
                sink(config, all);
            }
        }
    }
}

void set_appendkv_tile(KernelConfig& config) {
    Tile& tile = config.algorithm.tile;
    tile.m0 = 64;
    tile.n0 = 64;
    tile.k0 = static_cast<std::int16_t>(config.signature.hdim_q);
    tile.n1 = static_cast<std::int16_t>(config.signature.hdim_v);
}

void each_page(KernelConfig& config, RuleBits failed, bool keep_rejected, const CandidateSink& sink) {
    for (const std::int32_t page : page_sizes) {
        const RuleBits all =
            failed |
            unless(page != 1 || config.signature.kv_layout == KvLayout::linear, AuditRule::page_layout) |
            unless(config.signature.qscale != QScale::kv_blockscale || page >= config.algorithm.tile.n0,
                   AuditRule::page_block);
        if (all != 0 && !keep_rejected) continue;
        config.signature.page_size = page;
        sink(config, all);
    }
}

KernelConfig default_record(const ArchName& arch, std::int32_t block_per_cu) {
    KernelConfig config;
    config.arch = arch;
    config.signature.hdim_q = 128;
    config.signature.hdim_v = 128;
    config.algorithm.tile = {128, 128, 32, 128, 32, 128, 0, 0, 0};
    config.algorithm.wave = {4, 1, 1, 4, 1, 1, 1, 1, 1};
    config.algorithm.warp = {32, 32, 16, 32, 32, 16, 16, 16, 16};
    config.algorithm.block_per_cu = block_per_cu;
    apply(Feature{}, config);
    return config;
}

} // namespace fmha::catalog::audit
