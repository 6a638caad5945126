#pragma once

#include "dispatcher/types/args/toy.hpp"
#include "reference/numerics/formats.hpp"
#include "reference/rows.hpp"
#include "reference/views.hpp"

#include <cstdint>
#include <vector>

namespace fmha::reference {

/// Where the rows of entry b begin, and how many there are.
inline std::int64_t toy_start(const ToyArgs& args, std::int64_t b) {
    return args.shape.mode == Mode::group ? args.lengths.seqstart_q[b] : 0;
}
inline std::int64_t toy_length(const ToyArgs& args, std::int64_t b) {
    const LengthArrays& lengths = args.lengths;
    if (lengths.seqlen_q != nullptr) return lengths.seqlen_q[b];
    if (lengths.cu_seqlen_q != nullptr) return lengths.cu_seqlen_q[b + 1] - lengths.cu_seqlen_q[b];
    if (args.shape.mode == Mode::group) return lengths.seqstart_q[b + 1] - lengths.seqstart_q[b];
    return args.shape.seqlen_q;
}

inline std::vector<RowId> toy_rows(const ToyArgs& args) {
    std::vector<RowId> rows;
    for (std::int64_t b = 0; b < args.shape.batch; ++b)
        for (std::int64_t h = 0; h < args.shape.nhead_q; ++h)
            for (std::int64_t i = 0; i < toy_length(args, b); ++i) rows.push_back({b, h, i});
    return rows;
}

/// One element of O, before it is rounded.
inline double toy_value(const ToyArgs& args, const RowId& id, std::int64_t c) {
    return static_cast<double>(args.shape.nhead_q / args.shape.nhead_k) *
           decode(args.q.type, stored_code(args.q, id.b, id.h, toy_start(args, id.b) + id.i, c));
}

} // namespace fmha::reference
