#pragma once

#include "dispatcher/types/args.hpp"

#include <cstdint>

namespace fmha::reference {

/// Visible exactly when i − y + 1 ≤ j < i + x (M-3, M-7).
struct WindowCoordinates {
    std::int64_t y = 0, x = 0;
};

/// The coordinates of M-3; without a mask those that make both bounds vacuous, for window_generic the literal
/// ones.
WindowCoordinates window_coordinates(const MaskArgs& mask, std::int64_t seqlen_q, std::int64_t seqlen_k);

/// Whether row i sees key j by M-1, M-7 and, for sink tokens, K-1. Lengths are logical (M-2).
bool visible(const MaskArgs& mask, std::int64_t seqlen_q, std::int64_t seqlen_k, std::int64_t i,
             std::int64_t j);

/// The predicate of K-1 alone.
bool sees_as_sink_token(const MaskArgs& mask, std::int64_t seqlen_q, std::int64_t seqlen_k, std::int64_t i,
                        std::int64_t j);

/// Whether row i sees any key, without a search.
bool sees_any_key(const MaskArgs& mask, std::int64_t seqlen_q, std::int64_t seqlen_k, std::int64_t i);

} // namespace fmha::reference
