#pragma once

#include <array>
#include <cstdint>

namespace fmha::reference {

/// Philox-4x32 with 7 rounds (D-4).
std::array<std::uint32_t, 4> philox4x32_7(std::array<std::uint32_t, 4> counter,
                                          std::array<std::uint32_t, 2> key);

/// Where a random byte is taken (D-5): entry, query head, in-sequence row and key.
struct RandomSite {
    std::int64_t b, h, i, j;
};

/// The byte that decides whether the probability at `site` is kept (D-5). Offsets wrap modulo 2^64.
std::uint8_t random_byte(const RandomSite& site, std::int64_t nhead_q, std::uint64_t seed,
                         std::uint64_t offset);

/// D-2, evaluated in fp32 as the rule says; `rescale` is the fp32 quotient 1/p_undrop.
struct DropoutConstants {
    float p_undrop = 1.0F;
    std::uint8_t threshold = 255;
    float rescale = 1.0F;
};

/// `p_drop` in [0, 1) (D-1).
DropoutConstants dropout_constants(float p_drop);

} // namespace fmha::reference
