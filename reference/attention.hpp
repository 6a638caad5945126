#pragma once

#include "reference/attention_args.hpp"
#include "reference/forward.hpp"

#include <cstdint>
#include <span>

/// Forward attention over a cache: paged-KV, the main stage of split-KV and batch prefill (sections 16, 17 and 19).
namespace fmha::reference {

/// Computes `rows` as `forward` does. Of several splits it gives the partial results of `args.split`: normalised O, the LSE of
/// its keys, and their number for `seqlen_k`. Throws ProblemError for a quantisation mode that the family lacks or
/// contradictory lengths, and Error for a row outside its entry.
ForwardRows attention(const AttentionArgs& args, std::span<const RowId> rows,
                      const ForwardOptions& options = {}, Oracle oracle = Oracle::matrix);

/// As `forward_low_precision`.
Table attention_low_precision(const AttentionArgs& args, std::span<const RowId> rows,
                              const ElementTypes& types, int threads = 0);

/// Logical lengths of entry b (P-3, B-4, B-5), and every logical row, entries outermost.
EntryLengths entry_lengths(const AttentionArgs& args, std::int64_t b);
std::vector<RowId> all_rows(const AttentionArgs& args);

/// As of forward.
std::vector<RowId> sampled_rows(const AttentionArgs& args, std::uint64_t seed, std::int64_t random_rows = 64);

/// V times its descale, the value that enters F-10.
double value_of(const AttentionArgs& args, std::int64_t b, std::int64_t hk, std::int64_t j, std::int64_t c);

} // namespace fmha::reference
