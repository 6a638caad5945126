#pragma once

#include "dispatcher/types/kernel_config.hpp"
#include "dispatcher/types/type_classes.hpp"
#include "kernels/catalog/rules/rule_ids.hpp"

#include <vector>

namespace fmha::catalog::audit {

/// One point of a feature product: everything of a kernel but its head dimension, mode and tile. `failed`
/// holds the rules that remove the point for every tile.
struct Feature {
    Pipeline pipeline = Pipeline::qr;
    Padding pad{true, true, 1, 1};
    MaskClass mask = MaskClass::none;
    BiasType bias = BiasType::no_bias;
    QScale qscale = QScale::no_scale;
    Rope rope = Rope::none;
    KvLayout layout = KvLayout::vectorized;
    KvLookup lookup = KvLookup::sglang_1d;
    DropoutVariant dropout_variant = DropoutVariant::none;
    bool logits = false, lse = false, dropout = false, skip = false, sink = false, paged_kv = false;
    bool squant = false; ///< split-KV only: seen by the receipt, not by the record
    bool deterministic = false, dbias = false;
    RuleBits failed = 0;
};

/// Which masks an axis runs over.
enum class MaskAxis : std::uint8_t { none_and_causal, all };

struct ForwardFeatureOptions {
    bool trload = false;      ///< the architecture has transposing loads: qr_async_trload and its v3
    bool extended_qr = false; ///< receipt 1: a qr kernel beside every qr_async one
};

/// Feature products in emission order; a data type that a family does not have gives an empty list.
std::vector<Feature> forward_features(DataType type, std::int64_t hdim_q, std::int64_t hdim_v,
                                      ForwardFeatureOptions options);
std::vector<Feature> splitkv_features(DataType type, MaskAxis masks);
std::vector<Feature> combine_features(DataType type);
std::vector<Feature> pagedkv_features(DataType type);
std::vector<Feature> appendkv_features(DataType type);
/// `half_masks` applies to fp16 and bf16; fp8bf16 has all masks. Page sizes are not part of the product.
std::vector<Feature> prefill_features(DataType type, MaskAxis half_masks);

/// (dpad, dvpad) combinations and dropouts of one use of bwd_dq_dk_dv.
struct BackwardFeatureAxes {
    std::vector<std::array<std::int8_t, 2>> pads;
    std::vector<DropoutVariant> dropouts;
};
std::vector<Feature> backward_features(const BackwardFeatureAxes& axes);
std::vector<Feature> dot_do_o_features();
std::vector<Feature> convert_dq_features(std::int64_t hdim);

/// Writes every field of `feature` into `config`.
void apply(const Feature& feature, KernelConfig& config);

/// fp8 and bf8, the types of split-KV, paged-KV and append-KV.
constexpr bool is_plain_8bit(DataType type) {
    return type == DataType::fp8 || type == DataType::bf8;
}

/// Page sizes of batch prefill.
inline constexpr std::array<std::int32_t, 3> page_sizes{1, 16, 1024};

} // namespace fmha::catalog::audit
