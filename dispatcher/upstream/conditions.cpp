#include "dispatcher/upstream/conditions.hpp"

#include "dispatcher/selection/constraint.hpp"
#include "dispatcher/types/element.hpp"

namespace fmha::upstream {

namespace {

/// Records come from the simplified vocabulary, where "generic" is the word for any mask; causal kernels
/// exist in the v3 chain only.
bool mask_fits(MaskClass kernel, MaskType mask) {
    switch (kernel) {
    case MaskClass::none:
        return mask == MaskType::no_mask;
    case MaskClass::causal:
        return mask == MaskType::top_left || mask == MaskType::bottom_right;
    case MaskClass::generic:
        return mask != MaskType::no_mask;
    }
    return false;
}

/// Upstream's padded head dimension of a tile: larger than the tile for 80 and 96.
std::int64_t sub_dimension(std::int64_t k0max) {
    if (k0max == 80) return 96;
    if (k0max == 96) return 128;
    return k0max;
}

std::int64_t vector_elements(const KernelConfig& kernel) {
    return 128 / element_bits(element_types(kernel.signature.data_type, Fp8Flavour::ocp).q);
}

bool is_multiple(std::int64_t value, std::int64_t of) {
    return of > 0 && value % of == 0;
}

bool query_rows(const KernelConfig& k, const Problem& p) {
    return p.is_group_mode || k.algorithm.pad.s || is_multiple(p.seqlen_q, k.algorithm.tile.m0);
}

/// Whole-dimension condition of register-resident pipelines; both dimensions use the padded query dimension.
bool whole_dims(const KernelConfig& k, const Problem& p) {
    const std::int64_t sub = sub_dimension(k.algorithm.tile.k0max);
    return (k.algorithm.pad.d != 0 || is_multiple(p.hdim_q, sub)) &&
           (k.algorithm.pad.dv != 0 || is_multiple(p.hdim_v, sub));
}

bool dims_multiple_of(std::int64_t multiple, const Problem& p) {
    return is_multiple(p.hdim_q, multiple) && is_multiple(p.hdim_v, multiple);
}

bool constraint_holds(const KernelConfig& k, const Problem& p) {
    const auto constraint = parse_constraint(k.algorithm.constraint);
    return constraint && holds(*constraint, {.batch = p.batch,
                                             .nhead_q = p.nhead_q,
                                             .max_seqlen_q = p.max_seqlen_q,
                                             .hdim_q = p.hdim_q,
                                             .hdim_v = p.hdim_v,
                                             .compute_units = p.num_cus});
}

bool fwd_traits(const KernelConfig& k, const Problem& p) {
    const Signature& s = k.signature;
    return (s.mode == Mode::group) == p.is_group_mode && (s.v_layout == VLayout::row) == p.is_v_rowmajor &&
           s.has_logits_soft_cap == p.has_logits_soft_cap && mask_fits(s.mask, p.mask_type) &&
           s.bias == p.bias_type && s.has_lse == p.has_lse && s.has_dropout == p.has_dropout &&
           s.qscale == p.qscale_type && s.skip_min_seqlen_q == p.skip_min_seqlen_q &&
           s.has_sink == p.has_sink;
}

bool fwd(const KernelConfig& k, const Problem& p) {
    if (!fwd_traits(k, p) || !constraint_holds(k, p)) return false;
    const bool whole_keys =
        !p.cu_seqlen_k_ptr && p.seqlen_k != 0 && is_multiple(p.seqlen_k, k.algorithm.tile.n0);
    switch (k.algorithm.pipeline) {
    case Pipeline::qr_async:
        // The padded kernel takes exactly the problems that the unpadded one does not.
        return (p.is_group_mode || k.algorithm.pad.sk != whole_keys) &&
               dims_multiple_of(vector_elements(k), p);
    case Pipeline::qr_async_trload:
    case Pipeline::qr_async_trload_v3:
        return whole_dims(k, p);
    case Pipeline::qr_hpad:
        return query_rows(k, p) && (p.is_group_mode || k.algorithm.pad.sk || whole_keys) &&
               dims_multiple_of(8, p);
    default:
        return query_rows(k, p) && (p.is_group_mode || k.algorithm.pad.sk || whole_keys) && whole_dims(k, p);
    }
}

/// The conditions that split-KV and paged-KV share.
bool cache_reader(const KernelConfig& k, const Problem& p) {
    const Signature& s = k.signature;
    const Padding& pad = k.algorithm.pad;
    const bool whole_keys = !p.seqlen_k_ptr && is_multiple(p.seqlen_k, k.algorithm.tile.n0);
    return (s.mode == Mode::group) == p.is_group_mode && (s.v_layout == VLayout::row) == p.is_v_rowmajor &&
           s.has_logits_soft_cap == p.has_logits_soft_cap && mask_fits(s.mask, p.mask_type) &&
           s.bias == p.bias_type && s.do_fp8_static_quant == p.do_fp8_static_quant &&
           s.has_sink == p.has_sink && query_rows(k, p) && (p.is_group_mode || pad.sk || whole_keys) &&
           whole_dims(k, p);
}

bool append(const KernelConfig& k, const Problem& p) {
    const Tile& tile = k.algorithm.tile;
    const Padding& pad = k.algorithm.pad;
    return (k.signature.v_layout == VLayout::row) == p.is_v_rowmajor && k.signature.rope == p.rope_type &&
           k.signature.use_paged_kv == p.block_table_ptr && (pad.s || is_multiple(p.seqlen_q, tile.m0)) &&
           (pad.d != 0 || is_multiple(p.hdim_q, tile.k0)) && (pad.dv != 0 || is_multiple(p.hdim_v, tile.n1));
}

bool prefill(const KernelConfig& k, const Problem& p) {
    const Signature& s = k.signature;
    return (s.mode == Mode::group) == p.is_group_mode && (s.v_layout == VLayout::row) == p.is_v_rowmajor &&
           s.has_logits_soft_cap == p.has_logits_soft_cap && mask_fits(s.mask, p.mask_type) &&
           s.bias == p.bias_type && s.has_lse == p.has_lse && s.has_dropout == p.has_dropout &&
           s.qscale == p.qscale_type && s.has_sink == p.has_sink && s.kv_layout == p.kv_memory_layout &&
           s.kv_lookup == p.kv_lookup_table && s.page_size == p.page_size &&
           k.algorithm.load_mode == p.kv_load_mode && dims_multiple_of(vector_elements(k), p) &&
           constraint_holds(k, p);
}

bool backward(const KernelConfig& k, const Problem& p) {
    const Signature& s = k.signature;
    const Algorithm& a = k.algorithm;
    const auto dim_fits = [](std::int8_t pad, std::int64_t dim, std::int64_t tile) {
        return is_multiple(dim, pad == 0 ? tile : pad);
    };
    // One transposed-load tile is kept for short keys.
    const bool short_keys_only = a.use_trload && a.max_seq_len_q == 0 && a.tile.n0 == 128 && s.hdim_q == 128;
    return (s.mode == Mode::group) == p.is_group_mode && mask_fits(s.mask, p.mask_type) &&
           s.bias == p.bias_type && s.has_dbias == p.has_dbias && s.has_dropout == p.has_dropout &&
           (!s.has_dropout || s.is_store_randval == p.is_store_randval) &&
           s.is_deterministic == p.is_deterministic && dim_fits(a.pad.d, p.hdim_q, a.tile.b7) &&
           dim_fits(a.pad.dv, p.hdim_v, a.tile.b8) &&
           (a.max_seq_len_q == 0 || p.seqlen_q <= a.max_seq_len_q) && (!short_keys_only || p.seqlen_k <= 256);
}

} // namespace

bool accepts(const KernelConfig& kernel, const Problem& problem) {
    switch (kernel.signature.family) {
    case KernelFamily::fwd:
        return fwd(kernel, problem);
    case KernelFamily::fwd_splitkv:
        return kernel.signature.use_paged_kv == problem.block_table_ptr && cache_reader(kernel, problem);
    case KernelFamily::fwd_pagedkv:
        return kernel.signature.use_paged_kv == problem.use_pagedkv &&
               kernel.signature.has_lse == problem.has_lse &&
               kernel.signature.skip_min_seqlen_q == problem.skip_min_seqlen_q &&
               cache_reader(kernel, problem);
    case KernelFamily::fwd_appendkv:
        return append(kernel, problem);
    case KernelFamily::batch_prefill:
        return prefill(kernel, problem);
    case KernelFamily::bwd_dq_dk_dv:
        return backward(kernel, problem);
    default:
        return false;
    }
}

bool tile_is_preferred(const KernelConfig& kernel, std::int64_t largest_m0, const Problem& problem) {
    const std::int64_t m0 = kernel.algorithm.tile.m0;
    return m0 == largest_m0 || m0 == 64 || problem.seqlen_q <= m0;
}

} // namespace fmha::upstream
