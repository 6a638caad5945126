#pragma once

#include "kernels/programs/device.hpp"
#include "kernels/programs/matrix_place.hpp"
#include "kernels/programs/ws_items.hpp"

#include <cstdint>

/// The tensor maps of a warp-specialised launch. Q, K and V have one each, in the order of the streams. A row that does not exist must be 0,
/// or NaN behind the last key would reach O through weights of 0:
///
/// - Where every sequence has all rows of its slot, the map ends with the slot. Dimensions are channel, row, head, entry and one more.
/// - Otherwise (group mode, lengths by entry, pages) the map ends with the sequence, or with its part in a page, at any
///   place. Dimension 1 has 2^30 rows, and coordinate 2^30 − length + row is inside for row < length. Dimension 2 counts the
///   common divisor of the strides of entries and heads. The other two take the coordinates first row + length, stride s, and 2^30, stride
///   2^34 − s, so that together they are the rows from the first one on, of s bytes: 2^30 · 2^34 wraps to 0.
namespace fmha::hip_target {

/// Dimensions of every map: those that a tensor lacks have one element.
inline constexpr int map_rank = 5;

/// A map as a kernel takes it.
struct alignas(128) TensorMapBits {
    std::uint64_t word[16];
};

/// Where a box begins.
struct BoxCorner {
    std::int32_t at[map_rank];
};

/// How coordinates name a row of a mapped tensor. An entry is a page where rows lie in pages.
struct MapRows {
    static constexpr std::int32_t end = 1 << 30;

    bool ends_with_sequence = false;
    /// From one to the next along dimension 2, in common divisors of the strides where maps end with sequences, else in heads.
    std::int32_t of_entry = 0, of_head = 1;

    /// The corner of the box from channel 0, row `row0` on, of a sequence of `length` rows. Choices instead of two ways: with those a
    /// kernel of three teams spilled 56 bytes.
    FMHA_DEVICE BoxCorner corner(const kernels::MatrixPlace& place, std::int64_t length,
                                 std::int64_t row0) const {
        const auto narrow = [](std::int64_t n) { return static_cast<std::int32_t>(n); };
        const bool moved = ends_with_sequence;
        return {{0, narrow(moved ? end - length + row0 : row0),
                 narrow(place.entry) * of_entry + narrow(place.head) * of_head,
                 narrow(moved ? place.first_row + length : place.entry), moved ? end : 0}};
    }
    bool operator==(const MapRows&) const = default;
};

/// The data in front of the arguments of a launch: its maps, encoded, and the items of its blocks.
struct WsLaunch {
    static constexpr int maps_of_launch = 3;

    TensorMapBits maps[maps_of_launch];
    MapRows rows[maps_of_launch];
    kernels::WsGrid grid;
};

/// The parameter of a kernel whose arguments are `Args`.
template <class Args>
struct WsParameter {
    WsLaunch launch;
    Args args;
};

} // namespace fmha::hip_target
