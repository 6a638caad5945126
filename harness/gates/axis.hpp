#pragma once

#include <cstdint>

namespace fmha::harness {

/// The things that the rows or the columns of an output count. Rows are queries (o, lse, dq, d, dbias), keys (dk, dv, caches) or heads
/// (d_sink), columns are channels or keys (randval, dbias); an output with one value a row has no column axis.
enum class Axis : std::uint8_t { none, query, key, head, qk_channel, v_channel };

/// How messages call one position on an axis, and many.
constexpr const char* one_of(Axis axis) {
    return axis == Axis::key ? "key" : axis == Axis::query ? "row" : axis == Axis::head ? "head" : "column";
}
constexpr const char* many_of(Axis axis) {
    return axis == Axis::key     ? "keys"
           : axis == Axis::query ? "rows"
           : axis == Axis::head  ? "heads"
                                 : "columns";
}

} // namespace fmha::harness
