#pragma once

#include "dispatcher/types/args.hpp"
#include "reference/forward.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

/// Append-KV and RoPE (section 18): the cache and the queries afterwards, in exact bits.
namespace fmha::reference {

/// A tensor that append-KV changes.
enum class AppendTarget : std::uint8_t { k, v, q };

/// A row that append-KV writes: new key i of entry b in a KV head of the cache, or query row i of a query head. Of Q only the
/// channels that are rotated are written.
struct AppendedRow {
    AppendTarget target = AppendTarget::k;
    std::int64_t b = 0, h = 0, i = 0;
    std::int64_t slot = 0, row = 0;     ///< batch index and row of the tensor's view (V-2)
    std::int64_t cols = 0, rotated = 0; ///< channels written; the first `rotated` of them are rotated
    std::int64_t first = 0;             ///< its first channel in the tables of AppendedRows
    friend bool operator==(const AppendedRow&, const AppendedRow&) = default;
};

/// All rows that are written, those of K, V and Q one after another, entries outermost. Other rows stay.
struct AppendedRows {
    std::vector<AppendedRow> rows;
    std::vector<std::uint32_t> code; ///< stored bits: those copied, or rd(exact) of a rotated channel
    std::vector<double> exact;       ///< the real number before rounding, of rotated channels; 0 elsewhere

    std::uint32_t code_of(const AppendedRow& row, std::int64_t c) const {
        return code[static_cast<std::size_t>(row.first + c)];
    }
};

/// The outputs of append-KV, from the tensors as they are before it. Reads Q, the new keys and values, the tables of RoPE, lengths
/// and where the keys lie; not the cache. Throws ProblemError where `check_append` does, and Error for tensors that are absent or
/// not of one type.
AppendedRows append(const AppendKvArgs& args, Oracle oracle = Oracle::matrix);

/// How many values of a 16-bit type lie from one code to the other; 0 for equal values, both zeros or two NaN, and the largest
/// integer when one of them is NaN. Rotated channels may be 1 away from rd(exact) (tolerances B.6.4).
std::int64_t values_apart(ElementType type, std::uint32_t x, std::uint32_t y);

/// How many rows, codes and numbers differ between two results, which both have to the last bit; 0 when they agree, the largest
/// integer when they have other sizes.
std::int64_t append_disagreements(const AppendedRows& x, const AppendedRows& y);

} // namespace fmha::reference
