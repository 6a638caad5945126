#pragma once

#include <cstdint>

namespace fmha::harness {

/// The things that the rows or the columns of an output count. Rows are queries (o, lse, dq, d, dbias) or keys (dk, dv, caches), columns
/// are channels or keys (randval, dbias); an output with one value a row has no column axis.
enum class Axis : std::uint8_t { none, query, key, qk_channel, v_channel };

/// How messages call one position on an axis, and many.
constexpr const char* one_of(Axis axis) {
    return axis == Axis::key ? "key" : axis == Axis::query ? "row" : "column";
}
constexpr const char* many_of(Axis axis) {
    return axis == Axis::key ? "keys" : axis == Axis::query ? "rows" : "columns";
}

} // namespace fmha::harness
