#include "reference/numerics/dropout.hpp"

#include <cmath>

namespace fmha::reference {

std::array<std::uint32_t, 4> philox4x32_7(std::array<std::uint32_t, 4> c, std::array<std::uint32_t, 2> k) {
    constexpr std::uint64_t a = 0xD2511F53U, b = 0xCD9E8D57U;
    for (int round = 0; round < 7; ++round) {
        if (round > 0) {
            k[0] += 0x9E3779B9U;
            k[1] += 0xBB67AE85U;
        }
        const std::uint64_t from_c0 = a * c[0];
        const std::uint64_t from_c2 = b * c[2];
        c = {static_cast<std::uint32_t>(from_c2 >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(from_c2),
             static_cast<std::uint32_t>(from_c0 >> 32) ^ c[3] ^ k[1], static_cast<std::uint32_t>(from_c0)};
    }
    return c;
}

std::uint8_t random_byte(const RandomSite& site, std::int64_t nhead_q, std::uint64_t seed,
                         std::uint64_t offset) {
    const auto ii = static_cast<std::uint32_t>(site.i % 32);
    const auto jj = static_cast<std::uint32_t>(site.j % 32);
    const std::uint32_t lane = 32 * ((ii / 8) % 2) + jj;
    const std::uint32_t byte = 8 * (ii / 16) + ii % 8;
    const std::uint64_t off = offset + static_cast<std::uint64_t>(site.b * nhead_q + site.h) * 64 + lane;
    const auto tile_row = static_cast<std::uint32_t>(site.i / 32);
    const auto tile_column = static_cast<std::uint32_t>(site.j / 32);
    const auto words = philox4x32_7(
        {static_cast<std::uint32_t>(off), static_cast<std::uint32_t>(off >> 32), tile_row, tile_column},
        {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
    return static_cast<std::uint8_t>(words[byte / 4] >> (8 * (byte % 4)));
}

DropoutConstants dropout_constants(float p_drop) {
    const float p_undrop = 1.0F - p_drop;
    const float scaled = p_undrop * 255.0F;
    return {p_undrop, static_cast<std::uint8_t>(std::floor(scaled)), 1.0F / p_undrop};
}

} // namespace fmha::reference
