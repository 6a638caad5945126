#pragma once

#include "dispatcher/types/element.hpp"
#include "harness/cases/case.hpp"
#include "harness/data/guarded_tensor.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace fmha::harness {

/// One sequence pair (semantics section 4). `start_*` is the row offset of group mode, 0 in batch mode.
struct Entry {
    std::int64_t seqlen_q = 0, seqlen_k = 0;     ///< logical
    std::int64_t physical_q = 0, physical_k = 0; ///< allocated
    std::int64_t start_q = 0, start_k = 0;
    std::int64_t block_start_q = 0, block_start_k = 0; ///< descale blocks before this entry, group mode
    bool skipped = false;                              ///< by min_seqlen_q (N-5): no output is written
};

/// Everything about the memory of a forward case except the bytes. Absent tensors are nullopt.
struct FwdLayout {
    std::vector<Entry> entries;
    ElementTypes types;
    TensorLayout q, k, v, o;
    std::optional<TensorLayout> lse, bias, randval, q_descale, k_descale, v_descale;
    /// Extents that the batch and head axes of the descales and the bias really have (1 = broadcast).
    std::int64_t bias_batch = 0, bias_heads = 0;
    std::int64_t max_seqlen_q = 0, max_seqlen_k = 0;
};

/// Lays out the tensors of `c` for an architecture with the given 8-bit flavour, padded by `stride_padding`
/// between rows, heads and entries (L-2, L-3, Q-2, Q-5). Packed fp4 strides are rounded up to whole bytes.
/// Throws InputError for length lists of the wrong size.
FwdLayout lay_out(const FwdCase& c, Fp8Flavour flavour);

} // namespace fmha::harness
