#pragma once

#include "dispatcher/types/args.hpp"

#include <cstdint>
#include <vector>

/// Rows of the output and single values behind them.
namespace fmha::reference {

/// One logical row of the output: entry, query head, in-sequence row.
struct RowId {
    std::int64_t b = 0, h = 0, i = 0;
    friend bool operator==(const RowId&, const RowId&) = default;
    friend auto operator<=>(const RowId&, const RowId&) = default;
};

/// Every logical row, entries outermost. Entries that min_seqlen_q skips have none (N-5).
std::vector<RowId> all_rows(const FwdArgs& args);

/// The sample of tolerances B.1 for every entry and head: rows 0, 1, 31, 32, 63, 64, 127, 128, Sq/2, Sq−2,
/// Sq−1, the first and last row that sees a key, and `random_rows` seeded random ones, ascending and without
/// repetition.
std::vector<RowId> sampled_rows(const FwdArgs& args, std::uint64_t seed, std::int64_t random_rows = 64);

/// Logical lengths of entry b (N-1 … N-3); zero queries when min_seqlen_q skips it.
struct EntryLengths {
    std::int64_t seqlen_q = 0, seqlen_k = 0;
};
EntryLengths entry_lengths(const FwdArgs& args, std::int64_t b);

/// Whether the mask and its sink tokens let row i of entry b see key j (M-1, M-7, K-1); −∞ in the bias is not
/// looked at.
bool key_visible(const FwdArgs& args, std::int64_t b, std::int64_t i, std::int64_t j);

/// The dropout byte of D-5, which store_randval writes where `key_visible` (D-7).
std::uint8_t stored_random_byte(const FwdArgs& args, const RowId& row, std::int64_t j);

/// V times its descale, the value that enters F-10.
double value_of(const FwdArgs& args, std::int64_t b, std::int64_t hk, std::int64_t j, std::int64_t c);

} // namespace fmha::reference
