#include "reference/numerics/mask.hpp"

#include <algorithm>

namespace fmha::reference {
namespace {

bool is_anchored(const MaskArgs& mask) {
    return mask.type == MaskType::top_left || mask.type == MaskType::bottom_right;
}

} // namespace

WindowCoordinates window_coordinates(const MaskArgs& mask, std::int64_t seqlen_q, std::int64_t seqlen_k) {
    if (mask.type == MaskType::window_generic) return {mask.left + 1, mask.right + 1};
    if (!is_anchored(mask)) return {seqlen_q, seqlen_k};
    const bool top_left = mask.type == MaskType::top_left;
    const std::int64_t anchor = top_left ? 0 : seqlen_k - seqlen_q;
    const std::int64_t unbounded_left = (top_left ? seqlen_q : seqlen_k) - 1;
    const std::int64_t unbounded_right = (top_left ? seqlen_k : seqlen_q) - 1;
    const std::int64_t left = mask.left < 0 ? unbounded_left : mask.left;
    const std::int64_t right = mask.right < 0 ? unbounded_right : mask.right;
    return {1 + left - anchor, 1 + right + anchor};
}

bool sees_as_sink_token(const MaskArgs& mask, std::int64_t seqlen_q, std::int64_t seqlen_k, std::int64_t i,
                        std::int64_t j) {
    if (!is_anchored(mask)) return false;
    const WindowCoordinates window = window_coordinates(mask, seqlen_q, seqlen_k);
    return j < mask.sink && j < i + window.x && window.y < seqlen_q && i < seqlen_k;
}

bool visible(const MaskArgs& mask, std::int64_t seqlen_q, std::int64_t seqlen_k, std::int64_t i,
             std::int64_t j) {
    if (j < 0 || j >= seqlen_k) return false;
    if (mask.type == MaskType::no_mask) return true;
    if (mask.type == MaskType::window_generic) {
        const std::int64_t y = mask.left + 1, x = mask.right + 1;
        return i - y + 1 <= j && j < i + x;
    }
    const std::int64_t anchor = mask.type == MaskType::bottom_right ? seqlen_k - seqlen_q : 0;
    const bool left_ok = mask.left < 0 || j >= i + anchor - mask.left;
    const bool right_ok = mask.right < 0 || j <= i + anchor + mask.right;
    return (left_ok && right_ok) || sees_as_sink_token(mask, seqlen_q, seqlen_k, i, j);
}

bool sees_any_key(const MaskArgs& mask, std::int64_t seqlen_q, std::int64_t seqlen_k, std::int64_t i) {
    if (seqlen_k <= 0) return false;
    if (mask.type == MaskType::no_mask) return true;
    const WindowCoordinates window = window_coordinates(mask, seqlen_q, seqlen_k);
    const std::int64_t first = std::max<std::int64_t>(0, i - window.y + 1);
    const std::int64_t end = std::min(seqlen_k, i + window.x);
    return first < end || visible(mask, seqlen_q, seqlen_k, i, 0);
}

} // namespace fmha::reference
