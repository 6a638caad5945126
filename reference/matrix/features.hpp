#pragma once

#include "dispatcher/types/args.hpp"
#include "reference/attention.hpp"
#include "reference/matrix/decode.hpp"

#include <Eigen/Core>

#include <cstdint>
#include <span>

namespace fmha::reference::matrix {

/// Where one entry lies in the tensors and how long it is.
struct EntryExtent {
    std::int64_t b = 0;
    std::int64_t first_q = 0, queries = 0;
    std::int64_t first_k = 0, keys = 0;
    std::int64_t begin = 0, end = 0; ///< keys of the split (S-1)
};

/// N-1 to N-3, P-3, B-4, B-5 and S-1. Throws ProblemError when both length arrays of a side are given.
EntryExtent entry_extent(const AttentionArgs& args, std::int64_t b);

/// The keys that a row sees: sink tokens [sink_begin, sink_end) and the window [first, end), sink_end ≤ first ≤ end.
struct VisibleKeys {
    std::int64_t sink_end = 0, first = 0, end = 0, sink_begin = 0;
    std::int64_t count() const { return sink_end - sink_begin + end - first; }
};

/// Those of the keys that belong to the split.
VisibleKeys of_split(const VisibleKeys& keys, const EntryExtent& extent);

/// M-1, M-7 and K-1 as ranges.
VisibleKeys visible_keys(const MaskArgs& mask, const EntryExtent& extent, std::int64_t i);

/// Decoded queries, keys and values of one head as real numbers: descales (section 15) are multiplied in, and
/// scale_s into the queries.
void load_query(const FwdArgs& args, const EntryExtent& extent, const RowId& row, Block out);
void load_keys(const AttentionArgs& args, const EntryExtent& extent, std::int64_t hk, std::int64_t first,
               Block out);
void load_values(const AttentionArgs& args, const EntryExtent& extent, std::int64_t hk, std::int64_t first,
                 Block out);

/// β(i, ·) of E-1 or A-2 for the keys first … first + out.cols() − 1 in one row of `out`.
void load_bias(const FwdArgs& args, const EntryExtent& extent, const RowId& row, std::int64_t first,
               Block out);

/// β0 of B.2: the largest β(i, j) of A-2 among the keys that a row sees, 0 without any.
double alibi_origin(const FwdArgs& args, const EntryExtent& extent, const RowId& row,
                    const VisibleKeys& keys);

using Bytes = Eigen::Matrix<std::uint8_t, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// D-4 and D-5 for rows of one entry and the keys first … first + keys − 1, `first` a multiple of 32. Whole
/// lanes of the generator are evaluated together and their 16 bytes handed to the rows that use them.
void load_random_bytes(const FwdArgs& args, std::span<const RowId> rows, std::int64_t first,
                       std::int64_t keys, Bytes& out);

} // namespace fmha::reference::matrix
