#include "kernels/catalog/tables/walk.hpp"

#include <algorithm>

namespace fmha::catalog::tables {

namespace {

constexpr std::array simplified_masks{MaskClass::none, MaskClass::generic};
constexpr std::array generic_masks{MaskClass::none, MaskClass::causal, MaskClass::generic};

/// Appends the row's points: the product of its axes, leftmost slowest, and at each point its entries.
void append_points(const PipelineRow& row, KernelConfig partial, std::span<const MaskClass> vocabulary,
                   bool extended, std::vector<FeaturePoint>& points) {
    const FeatureAxes& axes = row.axes;
    const std::span<const MaskClass> masks =
        axes.mask.empty() ? vocabulary : std::span<const MaskClass>(axes.mask);
    Signature& s = partial.signature;
    const auto append_entries = [&] {
        for (const PipelineEntry& entry : row.entries) {
            if (entry.only_extended && !extended) continue;
            if ((entry.biases >> static_cast<unsigned>(s.bias) & 1U) == 0) continue;
            FeaturePoint point{partial, &entry};
            point.partial.signature.v_layout = entry.v_layout;
            point.partial.signature.rope = entry.rope;
            point.partial.signature.do_fp8_static_quant = entry.static_quant;
            if (entry.lse) point.partial.signature.has_lse = *entry.lse;
            point.partial.algorithm.pipeline = entry.pipeline;
            point.partial.algorithm.pad = entry.pad;
            point.partial.algorithm.use_trload = entry.trload;
            points.push_back(point);
        }
    };
    const auto over_caches = [&] {
        for (const bool paged : axes.paged_kv)
            for (const bool skip : axes.skip)
                for (const bool sink : axes.sink)
                    for (const KvLayout layout : axes.kv_layout)
                        for (const KvLookup lookup : axes.kv_lookup) {
                            s.use_paged_kv = paged;
                            s.skip_min_seqlen_q = skip;
                            s.has_sink = sink;
                            s.kv_layout = layout;
                            s.kv_lookup = lookup;
                            append_entries();
                        }
    };
    for (const bool logits : axes.logits)
        for (const QScale qscale : axes.qscale)
            for (const MaskClass mask : masks)
                for (const BiasType bias : axes.bias)
                    for (const bool lse : axes.lse)
                        for (const bool dropout : axes.dropout) {
                            s.has_logits_soft_cap = logits;
                            s.qscale = qscale;
                            s.mask = mask;
                            s.bias = bias;
                            s.has_lse = lse;
                            s.has_dropout = dropout;
                            over_caches();
                        }
}

/// A one-dimensional companion kernel: rows of 64, two workgroups per compute unit, no key axis.
KernelConfig companion_of(const KernelConfig& trait, KernelFamily family) {
    KernelConfig config;
    config.arch = trait.arch;
    config.signature.family = family;
    config.signature.data_type = trait.signature.data_type;
    config.signature.mode = trait.signature.mode;
    config.signature.hdim_q = trait.signature.hdim_q;
    config.signature.hdim_v = trait.signature.hdim_v;
    config.algorithm.pipeline = Pipeline::bwd;
    config.algorithm.tile.m0 = 64;
    config.algorithm.block_per_cu = 2;
    config.algorithm.pad.s = trait.algorithm.pad.s;
    config.algorithm.pad.sk = true;
    return config;
}

} // namespace

bool optdim_keeps(const Request& request, std::int64_t hdim_q) {
    const std::vector<int>& list = request.optdim;
    if (list.empty() || (list.size() == 1 && list.front() == -1)) return true;
    return std::find(list.begin(), list.end(), hdim_q) != list.end();
}

std::span<const MaskClass> mask_values(MaskVocabulary vocabulary) {
    if (vocabulary == MaskVocabulary::simplified) return simplified_masks;
    return generic_masks;
}

std::vector<FeaturePoint> feature_points(const ForwardTables& tables, KernelFamily family, DataType type,
                                         HeadDims hdim, MaskVocabulary masks, bool extended) {
    KernelConfig partial;
    partial.signature.family = family;
    partial.signature.data_type = type;
    partial.signature.hdim_q = hdim.q;
    partial.signature.hdim_v = hdim.v;
    if (family == KernelFamily::batch_prefill) partial.algorithm.load_mode = LoadMode::bload;
    std::vector<FeaturePoint> points;
    for (const PipelineRow& row : tables.pipelines)
        if (row.applies_to(type, hdim)) append_points(row, partial, mask_values(masks), extended, points);
    return points;
}

bool has_global_load_twin(const KernelConfig& config) {
    return config.signature.family == KernelFamily::batch_prefill &&
           config.algorithm.load_mode == LoadMode::bload &&
           config.signature.page_size < config.algorithm.tile.n0;
}

KernelConfig global_load_twin_of(const KernelConfig& config) {
    KernelConfig twin = config;
    twin.algorithm.load_mode = LoadMode::gload;
    return twin;
}

KernelConfig dot_do_o_of(const KernelConfig& trait) {
    KernelConfig config = companion_of(trait, KernelFamily::bwd_dot_do_o);
    config.algorithm.pad.dv = trait.algorithm.pad.dv != 0 ? 1 : 0;
    return config;
}

KernelConfig dq_dk_dv_of(const KernelConfig& trait) {
    KernelConfig config = trait;
    config.algorithm.pad.s = true; // the kernel masks ragged rows itself, with all of its companions
    return config;
}

KernelConfig convert_dq_of(const KernelConfig& trait) {
    KernelConfig config = companion_of(trait, KernelFamily::bwd_convert_dq);
    config.signature.is_deterministic = trait.signature.is_deterministic;
    config.algorithm.pad.d = trait.algorithm.pad.d != 0 ? 1 : 0;
    return config;
}

} // namespace fmha::catalog::tables
