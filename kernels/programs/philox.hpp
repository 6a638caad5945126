#pragma once

#include "dispatcher/types/args.hpp"
#include "kernels/programs/device.hpp"

#include <cstdint>

/// The kernels' random bytes for dropout (D-4, D-5).
namespace fmha::kernels {

struct PhiloxWords {
    std::uint32_t word[4];
};

/// Philox-4x32 with 7 rounds (D-4): 16 random bytes of (seed, offset, subsequence).
FMHA_DEVICE PhiloxWords philox(std::uint64_t seed, std::uint64_t offset, std::uint64_t subsequence) {
    std::uint32_t c0 = static_cast<std::uint32_t>(offset), c1 = static_cast<std::uint32_t>(offset >> 32U);
    std::uint32_t c2 = static_cast<std::uint32_t>(subsequence),
                  c3 = static_cast<std::uint32_t>(subsequence >> 32U);
    std::uint32_t k0 = static_cast<std::uint32_t>(seed), k1 = static_cast<std::uint32_t>(seed >> 32U);
    for (int round = 0; round < 7; ++round) {
        const std::uint64_t a = std::uint64_t{0xD2511F53U} * c0;
        const std::uint64_t b = std::uint64_t{0xCD9E8D57U} * c2;
        c0 = static_cast<std::uint32_t>(b >> 32U) ^ c1 ^ k0;
        c1 = static_cast<std::uint32_t>(b);
        c2 = static_cast<std::uint32_t>(a >> 32U) ^ c3 ^ k1;
        c3 = static_cast<std::uint32_t>(a);
        k0 += 0x9E3779B9U;
        k1 += 0xBB67AE85U;
    }
    return {{c0, c1, c2, c3}};
}

/// Random bytes of one (entry, head). The unit of generation is a square of 32 rows by 32 keys: 64 lanes with
/// 16 bytes each, independent of every tile size (D-5).
struct RandomSquares {
    static constexpr int side = 32, lanes = 64, bytes_per_lane = 16;

    std::uint64_t seed = 0;
    std::uint64_t head_offset = 0; ///< offset + (b·Hq + h)·64

    /// The 16 bytes of `lane` in the square (row_square, key_square), least significant byte of word 0 first.
    FMHA_DEVICE PhiloxWords lane_bytes(std::int64_t row_square, std::int64_t key_square, int lane) const {
        const std::uint64_t subsequence =
            static_cast<std::uint64_t>(row_square) + (static_cast<std::uint64_t>(key_square) << 32U);
        return philox(seed, head_offset + static_cast<std::uint64_t>(lane), subsequence);
    }

    /// Where byte `r` of `lane` belongs inside the square.
    FMHA_DEVICE static constexpr int row_of(int lane, int r) {
        return 16 * (r / 8) + 8 * (lane / 32) + r % 8;
    }
    FMHA_DEVICE static constexpr int key_of(int lane) { return lane % 32; }
};

/// Dropout of one (entry, head) (D-1, D-2).
struct Dropout {
    bool on = false;
    float kept = 1.0F;            ///< p_undrop
    std::uint8_t threshold = 255; ///< a weight stays when its byte is at most this
    RandomSquares squares;

    FMHA_DEVICE static Dropout of(const DropoutArgs& args, bool kernel_has_dropout, std::int64_t nhead_q,
                                  std::int64_t b, std::int64_t h) {
        Dropout out;
        out.on = kernel_has_dropout && args.p_drop > 0.0F;
        out.kept = 1.0F - args.p_drop;
        out.threshold = static_cast<std::uint8_t>(out.kept * 255.0F);
        const std::int64_t head = b * nhead_q + h;
        out.squares = {args.seed, args.offset + static_cast<std::uint64_t>(head) * RandomSquares::lanes};
        return out;
    }
};

} // namespace fmha::kernels
