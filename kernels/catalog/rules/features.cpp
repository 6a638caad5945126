#include "kernels/catalog/rules/features.hpp"

#include <initializer_list>

namespace fmha::catalog::audit {

namespace {

constexpr std::array yes_no{true, false};
constexpr std::array biases{BiasType::no_bias, BiasType::elementwise, BiasType::alibi};
constexpr std::array all_masks{MaskClass::none, MaskClass::causal, MaskClass::generic};

std::span<const MaskClass> masks_of(MaskAxis axis) {
    return std::span(all_masks).first(axis == MaskAxis::all ? 3 : 2);
}

constexpr Padding pads(bool s, bool sk, std::int8_t d, std::int8_t dv) {
    return {s, sk, d, dv};
}

void append_with_pads(std::vector<Feature>& features, Feature feature, std::initializer_list<Padding> sets) {
    feature.failed |=
        unless(!feature.logits || feature.bias == BiasType::no_bias, AuditRule::logits_without_bias);
    for (const Padding& set : sets) {
        feature.pad = set;
        features.push_back(feature);
    }
}

/// logits × mask × bias × lse × dropout × skip × sink, the product of fp16, bf16 and fp32.
template <class Use>
void each_forward_point(Use&& use) {
    for (const bool logits : yes_no)
        for (const MaskClass mask : all_masks)
            for (const BiasType bias : biases)
                for (const bool lse : yes_no)
                    for (const bool dropout : yes_no)
                        for (const bool skip : yes_no)
                            for (const bool sink : yes_no) {
                                Feature point;
                                point.logits = logits;
                                point.mask = mask;
                                point.bias = bias;
                                point.lse = lse;
                                point.dropout = dropout;
                                point.skip = skip;
                                point.sink = sink;
                                use(point);
                            }
}

void append_half_forward(std::vector<Feature>& features, std::int64_t hdim_q, std::int64_t hdim_v,
                         ForwardFeatureOptions options) {
    each_forward_point([&](Feature point) {
        if (hdim_q == 256 && hdim_v == 256) {
            append_with_pads(features, point,
                             {pads(false, false, 0, 0), pads(true, true, 0, 0), pads(true, true, 1, 1)});
        } else if (point.bias == BiasType::elementwise) {
            append_with_pads(features, point, {pads(false, false, 0, 0), pads(true, true, 1, 1)});
        } else {
            point.pipeline = Pipeline::qr_async;
            append_with_pads(features, point, {pads(true, false, 1, 1), pads(true, true, 1, 1)});
            if (options.extended_qr) {
                point.pipeline = Pipeline::qr;
                append_with_pads(features, point, {pads(true, true, 1, 1)});
            }
        }
    });
    if (!options.trload || hdim_q != hdim_v) return;
    if (hdim_q == 64 || hdim_q == 128)
        each_forward_point([&](Feature point) {
            if (point.logits || point.bias != BiasType::no_bias || point.dropout || point.skip) return;
            point.pipeline = Pipeline::qr_async_trload;
            append_with_pads(features, point, {pads(false, false, 0, 0), pads(false, false, 1, 1)});
        });
    if (hdim_q == 128)
        for (const bool logits : yes_no)
            for (const MaskClass mask : masks_of(MaskAxis::none_and_causal)) {
                Feature point;
                point.pipeline = Pipeline::qr_async_trload_v3;
                point.logits = logits;
                point.mask = mask;
                append_with_pads(features, point, {pads(true, true, 0, 0)});
            }
}

void append_8bit_forward(std::vector<Feature>& features, std::int64_t hdim_q) {
    for (const bool logits : yes_no)
        for (const QScale qscale : {QScale::no_scale, QScale::pertensor, QScale::blockscale})
            for (const MaskClass mask : all_masks)
                for (const bool sink : yes_no) {
                    Feature point;
                    point.pipeline = hdim_q == 64 ? Pipeline::qr : Pipeline::qr_async;
                    point.logits = logits;
                    point.qscale = qscale;
                    point.mask = mask;
                    point.sink = sink;
                    append_with_pads(features, point, {pads(true, false, 1, 1), pads(true, true, 1, 1)});
                }
}

} // namespace

std::vector<Feature> forward_features(DataType type, std::int64_t hdim_q, std::int64_t hdim_v,
                                      ForwardFeatureOptions options) {
    std::vector<Feature> features;
    switch (type) {
    case DataType::fp16:
    case DataType::bf16:
        append_half_forward(features, hdim_q, hdim_v, options);
        break;
    case DataType::fp32:
        each_forward_point([&](const Feature& point) {
            append_with_pads(features, point,
                             {pads(false, false, 0, 0), pads(false, true, 0, 0), pads(true, true, 1, 1)});
        });
        break;
    case DataType::fp8:
    case DataType::bf8:
    case DataType::fp8bf16:
    case DataType::fp8fp32:
        append_8bit_forward(features, hdim_q);
        break;
    case DataType::mxfp8:
    case DataType::mxfp4:
        break;
    }
    return features;
}

std::vector<Feature> splitkv_features(DataType type, MaskAxis masks) {
    std::vector<Feature> features;
    if (!is_half(type) && !is_plain_8bit(type)) return features;
    for (const bool logits : yes_no)
        for (const MaskClass mask : masks_of(masks))
            for (const BiasType bias : biases) {
                Feature point;
                point.lse = true;
                point.logits = logits;
                point.mask = mask;
                point.bias = bias;
                if (is_plain_8bit(type)) {
                    point.squant = true;
                    append_with_pads(features, point, {pads(false, false, 0, 0), pads(true, true, 0, 0)});
                    continue;
                }
                for (const bool paged : yes_no)
                    for (const bool sink : yes_no) {
                        point.paged_kv = paged;
                        point.sink = sink;
                        append_with_pads(features, point,
                                         {pads(false, true, 0, 0), pads(true, false, 0, 0),
                                          pads(true, true, 0, 0), pads(true, true, 1, 1)});
                    }
            }
    return features;
}

std::vector<Feature> combine_features(DataType type) {
    std::vector<Feature> features;
    if (!is_half(type) && !is_plain_8bit(type)) return features;
    for (const bool spad : yes_no)
        for (const bool dvpad : yes_no)
            for (const bool lse : yes_no) {
                if (lse && !is_half(type)) continue;
                Feature point;
                point.pipeline = Pipeline::splitkv_combine;
                point.lse = lse;
                append_with_pads(features, point, {pads(spad, true, 1, dvpad ? 1 : 0)});
            }
    return features;
}

std::vector<Feature> pagedkv_features(DataType type) {
    std::vector<Feature> features;
    if (!is_half(type) && !is_plain_8bit(type)) return features;
    for (const bool logits : yes_no)
        for (const MaskClass mask : all_masks)
            for (const BiasType bias : biases) {
                Feature point;
                point.pipeline = Pipeline::qr_pagedkv;
                point.paged_kv = true;
                point.logits = logits;
                point.mask = mask;
                point.bias = bias;
                if (is_plain_8bit(type)) {
                    append_with_pads(features, point, {pads(false, false, 0, 0), pads(true, true, 0, 0)});
                    continue;
                }
                for (const bool sink : yes_no) {
                    point.sink = sink;
                    append_with_pads(features, point, {pads(true, false, 0, 0), pads(true, true, 0, 0)});
                }
            }
    return features;
}

std::vector<Feature> appendkv_features(DataType type) {
    std::vector<Feature> features;
    Feature point;
    point.pipeline = Pipeline::appendkv;
    if (is_plain_8bit(type)) append_with_pads(features, point, {pads(true, true, 1, 1)});
    if (!is_half(type)) return features;
    for (const bool paged : yes_no) {
        point.paged_kv = paged;
        point.rope = Rope::none;
        append_with_pads(features, point, {pads(false, true, 0, 0), pads(true, true, 1, 1)});
        for (const Rope rope : {Rope::interleaved, Rope::half_rotated}) {
            point.rope = rope;
            append_with_pads(features, point, {pads(false, true, 1, 0), pads(true, true, 1, 1)});
        }
    }
    return features;
}

std::vector<Feature> prefill_features(DataType type, MaskAxis half_masks) {
    std::vector<Feature> features;
    Feature point;
    point.pipeline = Pipeline::qr_async;
    point.paged_kv = true;
    const auto append_layouts = [&] {
        for (const KvLayout layout : {KvLayout::vectorized, KvLayout::linear})
            for (const KvLookup lookup : {KvLookup::vllm_2d, KvLookup::sglang_1d}) {
                point.layout = layout;
                point.lookup = lookup;
                append_with_pads(features, point, {pads(true, true, 1, 1)});
            }
    };
    if (is_half(type))
        for (const bool logits : yes_no)
            for (const MaskClass mask : masks_of(half_masks))
                for (const BiasType bias : biases)
                    for (const bool lse : yes_no)
                        for (const bool dropout : yes_no) {
                            point.logits = logits;
                            point.mask = mask;
                            point.bias = bias;
                            point.lse = lse;
                            point.dropout = dropout;
                            append_layouts();
                        }
    if (type == DataType::fp8bf16)
        for (const bool logits : yes_no)
            for (const QScale qscale : {QScale::pertensor, QScale::kv_blockscale})
                for (const MaskClass mask : all_masks) {
                    point.logits = logits;
                    point.qscale = qscale;
                    point.mask = mask;
                    append_layouts();
                }
    return features;
}

std::vector<Feature> backward_features(const BackwardFeatureAxes& axes) {
    std::vector<Feature> features;
    for (const MaskClass mask : all_masks)
        for (const BiasType bias : biases)
            for (const bool dbias : yes_no)
                for (const DropoutVariant dropout : axes.dropouts)
                    for (const bool deterministic : yes_no)
                        for (const auto& [d, dv] : axes.pads) {
                            Feature point;
                            point.mask = mask;
                            point.bias = bias;
                            point.dbias = dbias;
                            point.dropout_variant = dropout;
                            point.dropout = dropout != DropoutVariant::none;
                            point.deterministic = deterministic;
                            point.pad = pads(true, true, d, dv);
                            point.failed =
                                unless(!dbias || bias == BiasType::elementwise, AuditRule::dbias_with_bias);
                            features.push_back(point);
                        }
    return features;
}

std::vector<Feature> dot_do_o_features() {
    std::vector<Feature> features;
    for (const bool spad : yes_no)
        for (const bool dvpad : yes_no)
            append_with_pads(features, Feature{}, {pads(spad, true, 1, dvpad ? 1 : 0)});
    return features;
}

std::vector<Feature> convert_dq_features(std::int64_t hdim) {
    std::vector<Feature> features;
    for (const bool spad : yes_no)
        for (const bool deterministic : yes_no) {
            Feature point;
            point.deterministic = deterministic;
            // The two lists run in opposite directions; upstream's names come out in this order.
            if (hdim == 128)
                append_with_pads(features, point,
                                 {pads(spad, true, 0, 1), pads(spad, true, 1, 1), pads(spad, true, 8, 1)});
            else
                append_with_pads(features, point, {pads(spad, true, 1, 1), pads(spad, true, 0, 1)});
        }
    return features;
}

void apply(const Feature& feature, KernelConfig& config) {
    Signature& s = config.signature;
    s.mask = feature.mask;
    s.bias = feature.bias;
    s.qscale = feature.qscale;
    s.rope = feature.rope;
    s.kv_layout = feature.layout;
    s.kv_lookup = feature.lookup;
    s.has_logits_soft_cap = feature.logits;
    s.has_lse = feature.lse;
    s.has_dropout = feature.dropout;
    s.skip_min_seqlen_q = feature.skip;
    s.has_sink = feature.sink;
    s.use_paged_kv = feature.paged_kv;
    s.is_deterministic = feature.deterministic;
    s.has_dbias = feature.dbias;
    s.is_store_randval = feature.dropout_variant == DropoutVariant::dropout_wg16_storerandval ||
                         feature.dropout_variant == DropoutVariant::dropout_wg32_storerandval;
    config.algorithm.pipeline = feature.pipeline;
    config.algorithm.pad = feature.pad;
    config.algorithm.dropout_variant = feature.dropout_variant;
}

} // namespace fmha::catalog::audit
