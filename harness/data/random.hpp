#pragma once

#include <cstdint>

namespace fmha::harness {

/// The harness's own counter-based generator: a value depends on (seed, stream, logical index) and on nothing
/// else, not on layout, strides, thread count or the order in which values are asked for. Integer arithmetic
/// only, so the bytes of a case are the same on every machine.
class Random {
  public:
    constexpr Random(std::uint64_t seed, std::uint64_t stream) : key_(mix(seed + golden * (stream + 1))) {}

    /// The generator of one row of a tensor; `value(c)` of it is the element in column c.
    constexpr Random row(std::uint64_t a, std::uint64_t b, std::uint64_t c = 0) const {
        Random derived = *this;
        derived.key_ = mix(mix(mix(key_ + golden * (a + 1)) + golden * (b + 1)) + golden * (c + 1));
        return derived;
    }

    constexpr std::uint64_t bits(std::uint64_t index) const { return mix(key_ + golden * (index + 1)); }
    /// [0, 1) in steps of 2^-24.
    constexpr double uniform(std::uint64_t index) const {
        return static_cast<double>(bits(index) >> 40U) * 0x1p-24;
    }
    /// lo … hi, both included.
    constexpr std::int64_t integer(std::uint64_t index, std::int64_t lo, std::int64_t hi) const {
        return lo + static_cast<std::int64_t>(bits(index) % static_cast<std::uint64_t>(hi - lo + 1));
    }
    /// Mean 0, variance 1: twelve 16-bit uniforms added up, within ±6. No library function is involved whose
    /// last bit may differ between machines.
    constexpr double normal(std::uint64_t index) const {
        constexpr std::uint64_t every_second = 0x0000FFFF0000FFFFULL;
        std::uint64_t word = bits(index);
        std::uint64_t sums = 0; // two of six numbers each, of 32 bits
        for (int w = 0; w < 3; ++w) {
            sums += (word & every_second) + (word >> 16U & every_second);
            word = mix(word + golden);
        }
        const auto sum = static_cast<std::int64_t>((sums & 0xFFFFFFFFU) + (sums >> 32U));
        return static_cast<double>(sum - 12 * 32768 + 6) * 0x1p-16;
    }

  private:
    static constexpr std::uint64_t golden = 0x9E3779B97F4A7C15ULL;
    static constexpr std::uint64_t mix(std::uint64_t x) {
        x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9ULL;
        x = (x ^ (x >> 27U)) * 0x94D049BB133111EBULL;
        return x ^ (x >> 31U);
    }
    std::uint64_t key_;
};

/// A random number as an operand of a matrix product: 0, or no closer to it than fp16's smallest normal number.
/// CDNA 2's matrix unit takes smaller fp16 as 0 (MIOpen, "MI200 MFMA behavior specifics"). Where one key or one row
/// is all that a result has, no bound of its rounding covers such a loss.
constexpr double clear_of_subnormals(double x) {
    constexpr double smallest_normal = 0x1p-14;
    if (x == 0.0 || x >= smallest_normal || x <= -smallest_normal) return x;
    return x < 0.0 ? -smallest_normal : smallest_normal;
}

} // namespace fmha::harness
