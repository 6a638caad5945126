#pragma once

#include "dispatcher/types/element.hpp"
#include "kernels/targets/hip/ws_launch.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fmha::hip_target {

/// How a tensor lies in global memory and which box of it one tensor copy of sm_90 takes to LDS. A runtime encodes it for its device;
/// the emulated machine copies by it as it is. Dimension 0 is dense. An element outside of the extents is 0 in LDS.
/// A line of the box, along dimension 0, is one line of a SwizzledTile.
struct TensorMapSpec {
    const void* base = nullptr; ///< null: the tensor has no element, and nothing is copied
    ElementType type = ElementType::fp16;
    std::array<std::int64_t, map_rank> extents{}; ///< elements
    std::array<std::int64_t, map_rank> strides{}; ///< bytes; sums of them wrap around at 2^64
    std::array<std::int32_t, map_rank> box{};     ///< elements, of which every so many are copied:
    std::array<std::int32_t, map_rank> steps{1, 1, 1, 1, 1};
    std::int32_t swizzle_bytes = 128;

    bool any() const { return base != nullptr; }
    std::int64_t box_bytes() const {
        std::int64_t bytes = element_bits(type) / 8;
        for (std::size_t i = 0; i < map_rank; ++i) bytes *= copied(i);
        return bytes;
    }
    /// Elements of a box along dimension `i` that are copied.
    std::int64_t copied(std::size_t i) const { return (box.at(i) + steps.at(i) - 1) / steps.at(i); }
    bool operator==(const TensorMapSpec&) const = default;
};

/// Why a tensor has no map (CUDA driver API, cuTensorMapEncodeTiled).
enum class MapProblem : std::uint8_t {
    element_type,     ///< not of 8 or 16 bits
    base_alignment,   ///< the address is no multiple of 16 bytes
    channel_stride,   ///< channels of a row, or keys of V by column, do not lie next to each other
    stride_alignment, ///< a stride is no multiple of 16 bytes
    stride_range, ///< a stride of a dimension with several elements is not positive, or 2^40 bytes or more
    extent,       ///< more than 2^32 elements
    box,          ///< more than 256 elements, lines that are not those of the swizzle, or steps beyond 8
    ends_in_line, ///< V by column, and its sequences end where only the device knows
    places, ///< more steps from entry to entry, or page to page, and head to head than coordinates count
};

struct Unmappable {
    MapProblem problem;
    std::string_view tensor; ///< "q"
    std::int64_t value = 0;  ///< that is not allowed
    bool operator==(const Unmappable&) const = default;
};

/// "k has a stride of 24 bytes; tensor copies take multiples of 16", one sentence.
std::string to_sentence(const Unmappable& problem);

/// The property of a map that the driver would refuse.
std::optional<Unmappable> cannot_map(std::string_view tensor, const TensorMapSpec& spec);

} // namespace fmha::hip_target
