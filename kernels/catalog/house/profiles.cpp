#include "dispatcher/types/family_traits.hpp"
#include "dispatcher/types/type_classes.hpp"
#include "kernels/catalog/house/house.hpp"

namespace fmha::catalog::house {

namespace {

using enum ProfileId;

bool is_forward_of_flash(KernelFamily family) {
    return family != KernelFamily::batch_prefill && !api_traits_of(family).gradients;
}

bool keeps_one(ProfileId profile, const KernelConfig& config) {
    const Signature& s = config.signature;
    const bool half = is_half(s.data_type);
    const bool aiter_fp8 = s.data_type == DataType::fp8bf16 && (s.hdim_q == 128 || s.hdim_q == 192);
    const bool row = s.v_layout == VLayout::row;
    const bool batch = s.mode == Mode::batch;
    const bool bwd = api_traits_of(s.family).gradients;
    const bool unscaled = s.qscale == QScale::no_scale;
    switch (profile) {
    case flash_fwd:
        return is_forward_of_flash(s.family) && half && row && s.bias != BiasType::elementwise && unscaled;
    case flash_bwd:
        return bwd && half && s.bias != BiasType::elementwise;
    case pytorch:
        return half && row && s.bias != BiasType::alibi && unscaled && !s.has_logits_soft_cap;
    case aiter_batch:
        return batch && row && (half || aiter_fp8);
    case aiter_group:
        return !batch && row && (half || aiter_fp8);
    case aiter_bwd_batch:
        return bwd && half && batch;
    case aiter_bwd_group:
        return bwd && half && !batch;
    case aiter_cpp:
        return row && (half || aiter_fp8);
    case transformer_engine:
        return half && row && unscaled && !s.has_logits_soft_cap &&
               (bwd ? !s.is_store_randval : s.family == KernelFamily::fwd && s.has_lse);
    case fp32_all:
        return s.data_type == DataType::fp32;
    case fp32_min:
        return s.data_type == DataType::fp32 && batch && (s.hdim_q == 48 || s.hdim_q == 128) &&
               s.bias == BiasType::no_bias && !s.has_lse && !s.has_dropout && unscaled;
    case fp8_test:
        return (s.data_type == DataType::fp8bf16 || s.data_type == DataType::fp8fp32) &&
               (s.hdim_q == 128 || s.hdim_q == 192);
    default:
        return true;
    }
}

} // namespace

bool keeps(const Profile& profile, const KernelConfig& config) {
    for (const ProfileId member : profile_members(profile))
        if (keeps_one(member, config)) return true;
    return false;
}

} // namespace fmha::catalog::house
