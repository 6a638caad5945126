#pragma once

#include "dispatcher/selection/constraint.hpp"
#include "dispatcher/selection/verdict.hpp"

#include <cstdint>
#include <limits>

/// The one predicate of the dispatcher: does a kernel take a stage of a problem? `match` answers for a pair;
/// the registry's index asks the same code about compact records. Problems are assumed valid.
namespace fmha {

/// Capabilities that a kernel may have beyond the needs of a problem (dispatcher-api 8.1).
struct Capabilities {
    MaskClass mask = MaskClass::none;
    bool sink = false, sink_logit = false, skip_min_seqlen_q = false, store_randval = false;
    friend bool operator==(const Capabilities&, const Capabilities&) = default;
    friend auto operator<=>(const Capabilities&, const Capabilities&) = default;
};

/// The rank of a kernel among those that take a stage. Kernels that agree in all of it lie together in the
/// registry's index.
struct RankingFacts {
    std::int32_t hdim_q = 0, hdim_v = 0;
    std::int32_t selection_rank = 0;
    std::int16_t tile_m0 = 0;
    Capabilities has;
    friend bool operator==(const RankingFacts&, const RankingFacts&) = default;
};

/// The fields of a kernel that decide besides those that must be equal. Small, so that scans stay in cache.
struct KernelFacts : RankingFacts {
    Constraint constraint = Constraint::none;
    bool needs_full_q_tiles = false, needs_full_k_tiles = false;
    bool offsets_32_bits = false;
    bool by_tensor_maps = false; ///< copies Q, K and V by them
    std::int16_t tile_n0 = 0;
    std::int16_t max_splits = 0;           ///< 0 = not a combine kernel
    std::int16_t tensor_alignment = 1;     ///< bytes that addresses and strides must be multiples of
    std::int32_t align_q = 1, align_v = 1; ///< the problem's dims must be multiples; 1 or 8 when padded
    std::int32_t max_seq_len_q = 0;
    std::int32_t page_size = 1;
    friend bool operator==(const KernelFacts&, const KernelFacts&) = default;
};

/// A stage of a problem, prepared once and compared with many kernels.
struct StageQuery {
    KernelFamily family = KernelFamily::fwd;
    const Problem* problem = nullptr; ///< the origin of the query; must outlive it
    ArchName arch;                    ///< empty = any
    std::uint64_t equality_key = 0;
    Capabilities needs;
    std::int32_t page_size = 0; ///< 0 = does not matter
    std::int64_t hdim_q = 0, hdim_v = 0;
    /// Head dimensions of the plan's main kernel that this stage must share; 0 = free.
    std::int64_t main_hdim_q = 0, main_hdim_v = 0;
    /// Query tile of the main kernel, for stages whose own record states none.
    std::int64_t main_tile_m0 = 0;
    bool group = false, ragged_q = false, ragged_k = false;
    bool reduces_heads = false; ///< dK and dV are sums over several query heads
    std::int64_t seqlen_q = 0, seqlen_k = 0, max_seqlen_q = 0;
    std::int64_t num_splits = 1;
    std::int64_t kv_pool_bytes = 0;
    std::int64_t tensor_alignment = most_tensor_alignment;
    bool tensors_mappable = true;
    ConstraintInputs constraint;
};

/// Fields that must be equal for this family, packed; fields that do not matter to it are 0. Two signatures
/// of one family agree in all of them exactly when the keys are equal, and the lowest differing bit belongs
/// to the first field that differs.
std::uint64_t equality_key(const Signature& signature);

/// Throws DeclarationError for a constraint name that does not exist.
KernelFacts facts_of(const KernelConfig& config);

/// The problem as `stage` sees it; keeps its address. `problem.num_splits` must be resolved (>= 1).
StageQuery make_query(const Problem& problem, KernelFamily stage);

/// Binds the stages after the main one to it (dispatcher-api 9: stages agree).
void follow_main(StageQuery& query, const KernelConfig& main);

/// Capabilities that the kernel has and the problem does not need.
int surplus(const Capabilities& has, const Capabilities& needs);

namespace detail {

constexpr bool mask_fits(MaskClass has, MaskClass needs) {
    return needs == MaskClass::causal ? has != MaskClass::none : has == needs;
}

} // namespace detail

/// Calls `visit(Verdict)` for every size or capability condition that fails, in order, until it returns
/// false.
template <class Visit>
void each_failure(const StageQuery& q, const KernelFacts& k, Visit&& visit) {
    const auto fails = [&visit](bool condition_holds, Reason reason, std::int64_t value, std::int64_t limit) {
        return !condition_holds && !visit(Verdict{reason, value, limit});
    };
    using enum Reason;
    const auto flag = [](bool on) { return static_cast<std::int64_t>(on); };
    if (fails(q.page_size == 0 || k.page_size <= 1 || k.page_size == q.page_size, page_size_differs,
              q.page_size, k.page_size))
        return;
    if (fails(detail::mask_fits(k.has.mask, q.needs.mask), mask_not_representable,
              static_cast<std::int64_t>(q.needs.mask), static_cast<std::int64_t>(k.has.mask)))
        return;
    if (fails(k.has.sink || !q.needs.sink, no_sink_tokens, 1, flag(k.has.sink))) return;
    if (fails(k.has.sink_logit || !q.needs.sink_logit, no_sink_logit, 1, flag(k.has.sink_logit))) return;
    if (fails(k.has.skip_min_seqlen_q || !q.needs.skip_min_seqlen_q, no_skip_min_seqlen_q, 1, 0)) return;
    if (fails(k.has.store_randval || !q.needs.store_randval, no_randval_store, 1, 0)) return;
    // A block that has all queries of one head keeps their dQ, and has no place for that of other heads.
    if (fails(!q.reduces_heads || k.max_seq_len_q == 0, no_reduced_dk_dv, 1, 0)) return;
    if (fails(q.hdim_q <= k.hdim_q, hdim_q_too_large, q.hdim_q, k.hdim_q)) return;
    if (fails(q.hdim_v <= k.hdim_v, hdim_v_too_large, q.hdim_v, k.hdim_v)) return;
    if (fails((q.main_hdim_q == 0 || q.main_hdim_q == k.hdim_q) &&
                  (q.main_hdim_v == 0 || q.main_hdim_v == k.hdim_v),
              hdim_of_other_stage, q.main_hdim_q != 0 ? q.main_hdim_q : q.main_hdim_v,
              q.main_hdim_q != 0 ? k.hdim_q : k.hdim_v))
        return;
    if (fails(!q.group || q.max_seqlen_q > 0, max_seqlen_q_missing, q.max_seqlen_q, 1)) return;
    if (k.needs_full_q_tiles) {
        const std::int64_t tile = k.tile_m0 > 0 ? k.tile_m0 : q.main_tile_m0;
        if (fails(!q.ragged_q && tile > 0 && q.seqlen_q % tile == 0, seqlen_q_not_padded, q.seqlen_q, tile))
            return;
    }
    if (k.needs_full_k_tiles &&
        fails(!q.ragged_k && q.seqlen_k > 0 && k.tile_n0 > 0 && q.seqlen_k % k.tile_n0 == 0,
              seqlen_k_not_padded, q.seqlen_k, k.tile_n0))
        return;
    if (fails(q.hdim_q % k.align_q == 0, hdim_q_not_padded, q.hdim_q, k.align_q)) return;
    if (fails(q.hdim_v % k.align_v == 0, hdim_v_not_padded, q.hdim_v, k.align_v)) return;
    if (fails(q.tensor_alignment >= k.tensor_alignment, tensors_not_aligned, q.tensor_alignment,
              k.tensor_alignment))
        return;
    if (fails(q.tensors_mappable || !k.by_tensor_maps, tensors_not_mappable, 0, 1)) return;
    if (fails(k.max_seq_len_q == 0 || q.seqlen_q <= k.max_seq_len_q, seqlen_q_too_long, q.seqlen_q,
              k.max_seq_len_q))
        return;
    if (fails(k.max_splits == 0 || q.num_splits <= k.max_splits, too_many_splits, q.num_splits, k.max_splits))
        return;
    if (fails(!k.offsets_32_bits || q.kv_pool_bytes <= std::numeric_limits<std::int32_t>::max(),
              pool_over_32_bits, q.kv_pool_bytes, std::numeric_limits<std::int32_t>::max()))
        return;
    if (k.constraint == Constraint::none) return;
    if (needs_compute_units(k.constraint) && q.constraint.compute_units == 0) {
        visit(Verdict{compute_units_unknown, 0, 1});
        return;
    }
    fails(holds(k.constraint, q.constraint), constraint_fails, q.constraint.max_seqlen_q, 0);
}

/// The first failing size or capability condition; the equality part is the caller's.
inline Verdict check_sizes(const StageQuery& query, const KernelFacts& facts) {
    Verdict first;
    each_failure(query, facts, [&first](const Verdict& verdict) {
        first = verdict;
        return false;
    });
    return first;
}

/// Architectures match when either is empty or they are equal (REQ-25).
bool arch_matches(const ArchName& problem, const ArchName& kernel);

/// The whole predicate: architecture, equality fields, capabilities, sizes; first failure wins.
Verdict match(const StageQuery& query, const KernelConfig& config);

/// The same for the stage that `config` belongs to.
Verdict match(const Problem& problem, const KernelConfig& config);

/// The reasons that keep a kernel from a stage, for "closest".
struct Distance {
    Verdict first;            ///< the first failing condition, as `match` gives it
    std::size_t failures = 0; ///< how many conditions fail; 0 = accepted. Another family counts as one.
};
Distance distance(const StageQuery& query, const KernelConfig& config);

} // namespace fmha
