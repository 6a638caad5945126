#include "kernels/catalog/ck/receipts.hpp"

#include "dispatcher/types/type_classes.hpp"

#include <algorithm>

namespace fmha::catalog::ck {

namespace {

using enum ProfileId;

bool is_half(const KernelConfig& c) {
    return fmha::is_half(c.signature.data_type);
}
bool is_fp8bf16(const KernelConfig& c) {
    return c.signature.data_type == DataType::fp8bf16;
}
bool is_fp32(const KernelConfig& c) {
    return c.signature.data_type == DataType::fp32;
}
bool row_major(const KernelConfig& c) {
    return c.signature.v_layout == VLayout::row;
}
bool batch(const KernelConfig& c) {
    return c.signature.mode == Mode::batch;
}
bool none_or_alibi(const KernelConfig& c) {
    return c.signature.bias != BiasType::elementwise;
}
bool none_or_elementwise(const KernelConfig& c) {
    return c.signature.bias != BiasType::alibi;
}
bool unscaled(const KernelConfig& c) {
    return c.signature.qscale == QScale::no_scale;
}
bool plain(const KernelConfig& c) {
    return !c.signature.do_fp8_static_quant;
}
bool hdim_in(const KernelConfig& c, std::int64_t a, std::int64_t b) {
    return c.signature.hdim_q == a || c.signature.hdim_q == b;
}
bool no_stored_randval(const KernelConfig& c) {
    return !c.signature.is_store_randval;
}
bool equal_head_pads(const KernelConfig& c) {
    return c.algorithm.pad.d == c.algorithm.pad.dv;
}

/// The mask word is exactly `s_no`, which only the simplified vocabulary has.
bool simplified_no_mask(MaskVocabulary masks, const KernelConfig& c) {
    return masks == MaskVocabulary::simplified && c.signature.mask == MaskClass::none;
}

bool keeps_fwd(ProfileId profile, MaskVocabulary masks, const KernelConfig& c) {
    const Signature& s = c.signature;
    const bool aiter_types = (is_half(c) || (is_fp8bf16(c) && hdim_in(c, 128, 192))) && row_major(c);
    switch (profile) {
    case flash_fwd:
        return is_half(c) && row_major(c) && none_or_alibi(c) && unscaled(c) && !s.skip_min_seqlen_q &&
               !s.has_sink && !s.has_logits_soft_cap && s.has_lse;
    case flash_bwd:
        return is_half(c) && row_major(c) && none_or_alibi(c) && unscaled(c) && !s.skip_min_seqlen_q &&
               !s.has_sink;
    case pytorch:
        return is_half(c) && row_major(c) && none_or_elementwise(c) && unscaled(c) && !s.skip_min_seqlen_q &&
               !s.has_logits_soft_cap;
    case aiter_batch:
        return aiter_types && batch(c);
    case aiter_group:
        return aiter_types && !batch(c);
    case aiter_cpp:
        return aiter_types;
    case transformer_engine:
        return is_half(c) && row_major(c) && unscaled(c) && s.has_lse && !s.skip_min_seqlen_q &&
               !s.has_sink && !s.has_logits_soft_cap;
    case fp32_all:
        return is_fp32(c) && !s.skip_min_seqlen_q && !s.has_logits_soft_cap;
    case fp32_min:
        return is_fp32(c) && hdim_in(c, 48, 128) && batch(c) && s.bias == BiasType::no_bias && !s.has_lse &&
               !s.has_dropout && !s.skip_min_seqlen_q && !s.has_logits_soft_cap &&
               simplified_no_mask(masks, c);
    case fp8_test:
        return (is_fp8bf16(c) || s.data_type == DataType::fp8fp32) && row_major(c) && hdim_in(c, 128, 192);
    default:
        return !is_fp32(c);
    }
}

bool keeps_splitkv(ProfileId profile, const KernelConfig& c) {
    switch (profile) {
    case flash_fwd:
        return is_half(c) && row_major(c) && none_or_alibi(c) && !c.signature.has_logits_soft_cap &&
               plain(c) && !c.signature.has_sink;
    // Upstream compares the type with a list of one text that holds both names, so nothing passes.
    case pytorch:
        return false;
    case aiter_group:
        return is_half(c) && !batch(c) && row_major(c) && plain(c);
    case aiter_cpp:
        return is_half(c) && row_major(c) && plain(c);
    case transformer_engine:
        return false;
    case fp32_all:
    case fp32_min:
        return is_fp32(c);
    default:
        return !is_fp32(c);
    }
}

bool keeps_combine(ProfileId profile, const KernelConfig& c) {
    switch (profile) {
    case aiter_group:
        return is_half(c) && !batch(c);
    case aiter_cpp:
        return is_half(c);
    case fp32_all:
    case fp32_min:
        return is_fp32(c);
    default:
        return !is_fp32(c);
    }
}

bool keeps_pagedkv(ProfileId profile, const KernelConfig& c) {
    const Signature& s = c.signature;
    const bool bare = is_half(c) && row_major(c) && plain(c);
    switch (profile) {
    case flash_fwd:
    case flash_bwd:
        return bare && none_or_alibi(c) && !s.skip_min_seqlen_q && !s.has_sink;
    case pytorch:
        return bare && none_or_elementwise(c) && !s.skip_min_seqlen_q && !s.has_sink;
    case aiter_batch:
        return bare && batch(c);
    case aiter_group:
        return bare && !batch(c);
    case aiter_cpp:
        return bare;
    case transformer_engine:
        return false;
    case fp32_all:
    case fp32_min:
        return is_fp32(c);
    default:
        return !is_fp32(c);
    }
}

bool keeps_appendkv(ProfileId profile, const KernelConfig& c) {
    switch (profile) {
    case flash_fwd:
    case pytorch:
        return is_half(c) && row_major(c);
    case fp32_all:
    case fp32_min:
        return is_fp32(c);
    default:
        return !is_fp32(c);
    }
}

bool keeps_batch_prefill(ProfileId profile, const KernelConfig& c) {
    const bool bare = is_half(c) && row_major(c) && unscaled(c);
    switch (profile) {
    case flash_fwd:
    case flash_bwd:
        return bare && none_or_alibi(c);
    case pytorch:
        return bare && none_or_elementwise(c);
    case aiter_batch:
        return batch(c);
    case aiter_group:
        return (is_half(c) || is_fp8bf16(c)) && row_major(c) && !batch(c);
    case aiter_cpp:
        return (is_half(c) || is_fp8bf16(c)) && row_major(c) && !batch(c) && unscaled(c);
    case transformer_engine:
        return false;
    case fp32_all:
    case fp32_min:
        return is_fp32(c);
    default:
        return !is_fp32(c);
    }
}

bool keeps_bwd(ProfileId profile, MaskVocabulary masks, const KernelConfig& c) {
    const Signature& s = c.signature;
    switch (profile) {
    case flash_fwd:
        return is_half(c) && none_or_alibi(c) && no_stored_randval(c) && equal_head_pads(c);
    case flash_bwd:
        return is_half(c) && none_or_alibi(c) && equal_head_pads(c) && !s.is_deterministic;
    case pytorch:
        return is_half(c) && none_or_elementwise(c) && no_stored_randval(c) && equal_head_pads(c) &&
               !s.is_deterministic;
    case aiter_bwd_batch:
        return is_half(c) && batch(c) && no_stored_randval(c);
    case aiter_bwd_group:
        return is_half(c) && !batch(c) && no_stored_randval(c);
    case aiter_cpp:
        return is_half(c);
    case transformer_engine:
        return is_half(c) && no_stored_randval(c);
    case fp32_all:
        return is_fp32(c) && equal_head_pads(c);
    case fp32_min:
        return is_fp32(c) && hdim_in(c, 64, 128) && equal_head_pads(c) && batch(c) &&
               s.bias == BiasType::no_bias && !s.has_dropout && simplified_no_mask(masks, c) &&
               !s.is_deterministic;
    default:
        return !is_fp32(c);
    }
}

bool keeps_one(ProfileId profile, MaskVocabulary masks, const KernelConfig& c) {
    if (profile == all) return true;
    switch (c.signature.family) {
    case KernelFamily::fwd:
        return keeps_fwd(profile, masks, c);
    case KernelFamily::fwd_splitkv:
        return keeps_splitkv(profile, c);
    case KernelFamily::fwd_splitkv_combine:
        return keeps_combine(profile, c);
    case KernelFamily::fwd_pagedkv:
        return keeps_pagedkv(profile, c);
    case KernelFamily::fwd_appendkv:
        return keeps_appendkv(profile, c);
    case KernelFamily::batch_prefill:
        return keeps_batch_prefill(profile, c);
    default:
        return keeps_bwd(profile, masks, c);
    }
}

} // namespace

bool keeps(const Profile& profile, MaskVocabulary masks, const KernelConfig& candidate) {
    for (const ProfileId member : profile_members(profile))
        if (keeps_one(member, masks, candidate)) return true;
    return false;
}

bool is_extended(const Profile& profile) {
    return profile.id == ck_extended || profile.id == all;
}

} // namespace fmha::catalog::ck
