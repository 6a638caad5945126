#pragma once

#include "dispatcher/types/enumerations.hpp"
#include "dispatcher/types/field_list.hpp"

#include <compare>
#include <cstdint>

namespace fmha {

/// The features of a kernel, and the features that a problem needs: one struct for both,
/// so that nothing is copied field by field. `hdim_*` are the problem's head dimensions in a problem and the
/// largest that the kernel takes in a kernel. Anchor and window sizes of a mask are arguments, not part of this.
struct Signature {
    KernelFamily family = KernelFamily::fwd;
    DataType data_type = DataType::fp16;
    Mode mode = Mode::batch;
    VLayout v_layout = VLayout::row;
    bool has_logits_soft_cap = false;
    MaskClass mask = MaskClass::none;
    BiasType bias = BiasType::no_bias;
    bool has_lse = false;
    bool has_dropout = false;
    QScale qscale = QScale::no_scale;
    Rope rope = Rope::none;
    bool use_paged_kv = false;
    bool do_fp8_static_quant = false;
    bool skip_min_seqlen_q = false;
    bool has_sink = false;
    bool has_sink_logit = false;
    bool has_dbias = false;
    bool is_store_randval = false;
    bool is_deterministic = false;
    KvLayout kv_layout = KvLayout::unset;
    KvLookup kv_lookup = KvLookup::unset;
    std::int32_t page_size = 1;
    std::int64_t hdim_q = 0;
    std::int64_t hdim_v = 0;

    friend bool operator==(const Signature&, const Signature&) = default;
    friend auto operator<=>(const Signature&, const Signature&) = default;
};
FMHA_FIELDS(Signature, family, data_type, mode, v_layout, has_logits_soft_cap, mask, bias, has_lse,
            has_dropout, qscale, rope, use_paged_kv, do_fp8_static_quant, skip_min_seqlen_q, has_sink,
            has_sink_logit, has_dbias, is_store_randval, is_deterministic, kv_layout, kv_lookup, page_size,
            hdim_q, hdim_v)

} // namespace fmha
