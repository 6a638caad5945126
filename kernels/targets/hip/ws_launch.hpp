#pragma once

#include "dispatcher/types/args.hpp"
#include "kernels/programs/device.hpp"
#include "kernels/programs/matrix_place.hpp"
#include "kernels/programs/ws_items.hpp"

#include <cstdint>

/// The tensor maps of a warp-specialised launch. Q, K and V have one each, in the order of the streams. Dimensions are channel, row, head and
/// two more. A row that does not exist must be 0, or NaN behind the last key would reach O through weights of 0:
///
/// - Where every sequence has all rows of its slot, the map ends with the slot: the fourth dimension is the entry.
/// - Otherwise (group mode, lengths by entry) the map ends with the sequence, wherever that lies. Dimension 1 has
///   2^30 rows, and coordinate 2^30 − length + row is inside for row < length. The other two dimensions take the coordinates
///   begin + length, stride s, and 2^30, stride 2^34 − s, so that all of it is begin + row rows of s bytes: 2^30 · 2^34 wraps to 0.
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

/// How coordinates name a row of a mapped tensor.
struct MapRows {
    static constexpr std::int32_t end = 1 << 30;

    bool ends_with_sequence = false;
    std::int64_t of_entry = 0; ///< rows from one entry to the next, where maps end with sequences

    /// The corner of the box from channel 0, row `row0` on, of a sequence of `length` rows.
    FMHA_DEVICE BoxCorner corner(const kernels::MatrixPlace& place, std::int64_t length,
                                 std::int64_t row0) const {
        const auto narrow = [](std::int64_t n) { return static_cast<std::int32_t>(n); };
        if (!ends_with_sequence) return {{0, narrow(row0), narrow(place.head), narrow(place.entry), 0}};
        const std::int64_t begin = place.entry * of_entry + place.first_row;
        return {{0, narrow(end - length + row0), narrow(place.head), narrow(begin + length), end}};
    }
    bool operator==(const MapRows&) const = default;
};

/// What the kernel's parameter is: its maps, encoded, and who computes what, beside the arguments.
struct WsLaunch {
    static constexpr int maps_of_launch = 3;

    TensorMapBits maps[maps_of_launch];
    MapRows rows[maps_of_launch];
    kernels::WsGrid grid;
    FwdArgs args;
};

} // namespace fmha::hip_target
