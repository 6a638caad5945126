#pragma once

#include "dispatcher/types/error.hpp"
#include "dispatcher/types/fields.hpp"
#include "dispatcher/types/signature.hpp"

#include <cstdint>
#include <string>

namespace fmha {

/// Which length arrays and tables the caller supplies; sizes alone do not decide a kernel.
struct Presence {
    bool seqstart_q = false, seqstart_k = false;
    bool seqlen_q = false, seqlen_k = false;
    bool cu_seqlen_q = false, cu_seqlen_k = false;
    bool block_table = false, cache_batch_idx = false, is_gappy = false;
    bool rotary = false;
    friend bool operator==(const Presence&, const Presence&) = default;
    friend auto operator<=>(const Presence&, const Presence&) = default;
};
FMHA_FIELDS(Presence, seqstart_q, seqstart_k, seqlen_q, seqlen_k, cu_seqlen_q, cu_seqlen_k, block_table,
            cache_batch_idx, is_gappy, rotary)

/// More splits than this no kernel combines (S-7).
inline constexpr int most_splits_log2 = 7;
inline constexpr std::int64_t most_num_splits = std::int64_t{1} << most_splits_log2;

/// More bytes than this no kernel asks for: units of asynchronous and tensor copies have 16.
inline constexpr std::int64_t most_tensor_alignment = 16;

/// A problem, without its data (dispatcher-api section 3). Build one with ProblemBuilder, which
/// validates; all extents are 64-bit.
struct Problem {
    ApiFamily api_family = ApiFamily::fwd;
    ArchName arch; ///< empty = any
    Signature signature;
    MaskType mask_type = MaskType::no_mask;
    std::int64_t window_left = -1, window_right = -1, sink_size = 0;
    std::int64_t batch = 0, nhead_q = 0, nhead_k = 0;
    std::int64_t seqlen_q = 0, seqlen_k = 0;
    std::int64_t max_seqlen_q = 0, max_seqlen_k = 0; ///< 0 = not given
    std::int64_t min_seqlen_q = 0;
    std::int64_t num_splits = 1;
    std::int64_t rotary_dim = 0;
    std::int64_t kv_pool_bytes = 0; ///< batch prefill: bytes of the larger of the two page pools, 0 = unknown
    std::int64_t compute_units = 0; ///< 0 = the architecture's default
    /// Forward: the largest power of two up to 16 that divides addresses and strides of Q, K and V by row, in bytes.
    std::int64_t tensor_alignment = most_tensor_alignment;
    /// Forward: tensor maps can have the strides and extents of Q, K and V by row (`tensor_maps_have`).
    bool tensors_mappable = true;
    bool reduce_dk_dv = false; ///< backward: dK and dV are sums over the query heads of a KV head (W-11)
    Presence presence;

    friend bool operator==(const Problem&, const Problem&) = default;
    friend auto operator<=>(const Problem&, const Problem&) = default;

    std::int64_t effective_max_seqlen_q() const { return max_seqlen_q > 0 ? max_seqlen_q : seqlen_q; }
    std::int64_t effective_max_seqlen_k() const { return max_seqlen_k > 0 ? max_seqlen_k : seqlen_k; }
    /// Query heads whose dK and dV are one.
    std::int64_t heads_of_dk_dv() const { return reduce_dk_dv ? nhead_q / nhead_k : 1; }
    bool has_variable_seqlen_q() const {
        return presence.seqstart_q || presence.seqlen_q || presence.cu_seqlen_q;
    }
    bool has_variable_seqlen_k() const {
        return presence.seqstart_k || presence.seqlen_k || presence.cu_seqlen_k;
    }

    /// Floating-point operations (dispatcher-api 3.1); non-positive factors give 0, saturates at the largest
    /// 64-bit value instead of wrapping (REQ-17).
    std::int64_t num_ops() const;
    /// Every field that influences the choice of a kernel and no sequence length, separated by 0x1F (dispatcher-api 3.1): what callers
    /// who keep plans look them up by.
    std::string canonical_key() const;
    /// One line for people: `fwd bf16 batch b2 h8/2 sq1024 sk1024 d128/128 mask=bottom_right …`.
    std::string to_string() const;
};
FMHA_FIELDS(Problem, api_family, arch, signature, mask_type, window_left, window_right, sink_size, batch,
            nhead_q, nhead_k, seqlen_q, seqlen_k, max_seqlen_q, max_seqlen_k, min_seqlen_q, num_splits,
            rotary_dim, kv_pool_bytes, compute_units, tensor_alignment, tensors_mappable, reduce_dk_dv,
            presence)

/// The kernel side's view of a mask (M-6): none; causal when no lower bound is needed; generic otherwise.
MaskClass mask_class(MaskType type, std::int64_t window_left);

/// Derives fields from others (dispatcher-api 3.2): the mask class, has_sink from a sink size, the skip
/// flag from min_seqlen_q, paging from a block table or from an API that has no other form, and has_lse =
/// false in backward, where the LSE is an input. Problems read from a file go through this before `validate`.
Problem normalised(Problem problem);

/// Throws ProblemError for the first rule of semantics section 23 (and of H, N, C, D, K, P, S, V, B) that the
/// problem breaks. A problem that passes can be computed by the reference.
void validate(const Problem& problem);

/// Sets a problem field by field, then `build()` derives others from them (the mask class, normalised
/// has_lse of backward) and validates. Setter names are those of dispatcher-api 3.2.
class ProblemBuilder {
  public:
    ProblemBuilder& api_family(ApiFamily family);
    ProblemBuilder& kernel_family(KernelFamily family);
    ProblemBuilder& gfx_arch(std::string_view arch);
    ProblemBuilder& data_type(DataType type);
    ProblemBuilder& dims(std::int64_t hdim_q, std::int64_t hdim_v, std::int64_t batch, std::int64_t seqlen_q,
                         std::int64_t seqlen_k);
    ProblemBuilder& nheads(std::int64_t nhead_q, std::int64_t nhead_k);
    ProblemBuilder& mask_type(MaskType type);
    ProblemBuilder& window(std::int64_t left, std::int64_t right);
    ProblemBuilder& sink_size(std::int64_t tokens);
    ProblemBuilder& bias_type(BiasType type);
    ProblemBuilder& lse(bool on);
    ProblemBuilder& dropout(bool on);
    ProblemBuilder& logits_soft_cap(bool on);
    ProblemBuilder& v_rowmajor(bool on);
    ProblemBuilder& group_mode(bool on);
    ProblemBuilder& paged_kv(bool on);
    ProblemBuilder& fp8_static_quant(bool on);
    ProblemBuilder& skip_min_seqlen_q(bool on);
    ProblemBuilder& sink(bool on);
    ProblemBuilder& sink_logit(bool on);
    ProblemBuilder& qscale_type(QScale type);
    ProblemBuilder& rope_type(Rope type);
    ProblemBuilder& rotary_dim(std::int64_t dim);
    ProblemBuilder& kv_cache(KvLayout layout, KvLookup lookup, std::int32_t page_size);
    ProblemBuilder& page_size(std::int32_t size);
    ProblemBuilder& max_seqlen(std::int64_t q, std::int64_t k);
    ProblemBuilder& min_seqlen_q(std::int64_t n);
    ProblemBuilder& num_splits(std::int64_t n);
    ProblemBuilder& bwd_flags(bool dbias, bool store_randval, bool deterministic);
    ProblemBuilder& reduce_dk_dv(bool on);
    ProblemBuilder& store_randval(bool on);
    ProblemBuilder& variable_lengths(const Presence& presence);
    ProblemBuilder& compute_units(std::int64_t n);
    ProblemBuilder& kv_pool_bytes(std::int64_t bytes);
    ProblemBuilder& tensor_alignment(std::int64_t bytes);
    ProblemBuilder& tensors_mappable(bool on);

    /// Throws ProblemError.
    Problem build() const;

  private:
    Problem problem_;
};

} // namespace fmha
