#include "kernels/catalog/sweep/accepts.hpp"

#include "dispatcher/types/family_traits.hpp"
#include "kernels/catalog/rules/audit_request.hpp"

#include <algorithm>

namespace fmha::catalog {
namespace {

bool allows(const AllowBits& list, unsigned value) {
    return !list || (*list >> value & 1U) != 0;
}

Pipeline in_upstreams_words(Pipeline pipeline) {
    switch (pipeline) {
    case Pipeline::qr_hpad:
        return Pipeline::qr;
    case Pipeline::v3:
        return Pipeline::qr_async_trload_v3;
    case Pipeline::ws:
        return Pipeline::qr_async;
    default:
        return pipeline;
    }
}

bool allows_mask(const AllowBits& masks, const Signature& signature) {
    if (allows(masks, static_cast<unsigned>(signature.mask))) return true;
    const bool gradients = traits_of(signature.family).products == MatrixProducts::five;
    return gradients && signature.mask == MaskClass::generic &&
           allows(masks, static_cast<unsigned>(MaskClass::causal));
}

/// The features of kernels that compute scores; those around them have none.
bool allows_features(const AllowLists& allow, const KernelConfig& kernel) {
    const Signature& s = kernel.signature;
    return allows_mask(allow.masks, s) && allows(allow.biases, static_cast<unsigned>(s.bias)) &&
           allows(allow.pipelines, static_cast<unsigned>(in_upstreams_words(kernel.algorithm.pipeline))) &&
           allows(allow.lse, s.has_lse ? 1 : 0) && allows(allow.dropout, s.has_dropout ? 1 : 0) &&
           allows(allow.logits, s.has_logits_soft_cap ? 1 : 0) &&
           (allows(allow.sink, 0) || (s.has_sink && allows(allow.sink, 1))) &&
           allows(allow.paged_kv, s.use_paged_kv ? 1 : 0);
}

} // namespace

bool accepts(const SweepConfig& config, const KernelConfig& kernel) {
    const Signature& s = kernel.signature;
    const AllowLists& allow = config.allow;
    if (audit::variant_of(s.family) != config.variant) return false;
    if (allow.data_types &&
        std::ranges::find(*allow.data_types, to_string(s.data_type)) == allow.data_types->end())
        return false;
    if (!allows(allow.modes, static_cast<unsigned>(s.mode))) return false;
    return traits_of(s.family).products == MatrixProducts::none || allows_features(allow, kernel);
}

} // namespace fmha::catalog
