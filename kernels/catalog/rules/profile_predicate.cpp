#include "kernels/catalog/rules/profile_predicate.hpp"

#include "dispatcher/types/error.hpp"
#include "dispatcher/types/family_traits.hpp"
#include "dispatcher/types/type_classes.hpp"

#include <algorithm>

namespace fmha::catalog::audit {

namespace {

bool is_half(const Signature& s) {
    return fmha::is_half(s.data_type);
}

bool is_backward(const Signature& s) {
    return api_traits_of(s.family).gradients;
}

bool is_flash_forward(const Signature& s) {
    return s.family == KernelFamily::fwd || s.family == KernelFamily::fwd_splitkv ||
           s.family == KernelFamily::fwd_appendkv || s.family == KernelFamily::fwd_pagedkv;
}

/// The types of the aiter profiles; two of them take fp8bf16 at two head dimensions only.
bool is_aiter(const Signature& s, bool limited_heads) {
    if (s.data_type == DataType::fp8bf16) return !limited_heads || s.hdim_q == 128 || s.hdim_q == 192;
    return is_half(s);
}

bool is_fp32_min_head(std::int64_t hdim) {
    return hdim == 48 || hdim == 128;
}

bool keeps(ProfileId profile, const Signature& s) {
    const bool row = s.v_layout == VLayout::row;
    const bool plain = s.qscale == QScale::no_scale && !s.skip_min_seqlen_q;
    switch (profile) {
    case ProfileId::ck_default:
    case ProfileId::ck_extended:
        return s.data_type != DataType::fp32;
    case ProfileId::flash_fwd:
        return is_flash_forward(s) && is_half(s) && row && s.bias != BiasType::elementwise && plain;
    case ProfileId::flash_bwd:
        return is_backward(s) && is_half(s);
    case ProfileId::pytorch:
        return is_half(s) && row && s.bias != BiasType::alibi && plain && !s.has_logits_soft_cap &&
               !s.has_sink;
    case ProfileId::aiter_batch:
        return is_aiter(s, true) && s.mode == Mode::batch && row;
    case ProfileId::aiter_group:
        return is_aiter(s, false) && s.mode == Mode::group && row;
    case ProfileId::aiter_bwd_batch:
        return is_backward(s) && is_half(s) && s.mode == Mode::batch;
    case ProfileId::aiter_bwd_group:
        return is_backward(s) && is_half(s) && s.mode == Mode::group;
    case ProfileId::aiter_cpp:
        return is_aiter(s, true) && row;
    case ProfileId::fp32_all:
        return s.data_type == DataType::fp32 && !s.skip_min_seqlen_q && !s.has_logits_soft_cap;
    case ProfileId::fp32_min:
        return s.data_type == DataType::fp32 && s.mode == Mode::batch && is_fp32_min_head(s.hdim_q) &&
               is_fp32_min_head(s.hdim_v) && s.bias == BiasType::no_bias && !s.has_lse && !s.has_dropout &&
               s.qscale == QScale::no_scale;
    case ProfileId::fp8_test:
        return (s.data_type == DataType::fp8bf16 || s.data_type == DataType::fp8fp32) &&
               (s.hdim_q == 128 || s.hdim_q == 192) && row;
    case ProfileId::all:
        return true;
    default:
        throw InputError(
            "upstream's predicates on finished kernels do not know this profile; they know ck_default "
            "to aiter_cpp, fp32_all, fp32_min, fp8_test, all and the groups");
    }
}

} // namespace

bool profile_keeps(ProfileId profile, const KernelConfig& config) {
    const Profile named{profile, 0};
    return std::ranges::any_of(profile_members(named),
                               [&](ProfileId member) { return keeps(member, config.signature); });
}

} // namespace fmha::catalog::audit
