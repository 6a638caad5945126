#pragma once

#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <unistd.h>
#include <vector>

/// Attention of one head in binary64, for the kernels of a checkout that stands in for one. FAKE in the environment says how they go
/// wrong.
namespace fake {

inline std::string mood() {
    const char* const said = std::getenv("FAKE");
    return said == nullptr ? "right" : said;
}

/// What happens before anything is computed; true: nothing shall be.
inline bool misbehaves() {
    if (mood() == "crashing") std::raise(SIGSEGV);
    if (mood() == "hanging") ::sleep(600);
    return mood() == "silent";
}

inline double decode(std::uint16_t code) { // fp16
    const int exponent = (code >> 10) & 31, fraction = code & 1023;
    const double magnitude =
        exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    return (code & 0x8000) != 0 ? -magnitude : magnitude;
}

inline std::uint16_t encode(double value) { // to nearest, without overflow
    const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    const double magnitude = std::abs(value);
    int exponent = 0;
    std::frexp(magnitude, &exponent);
    const int step = std::max(exponent - 11, -24);
    const auto units = static_cast<int>(std::nearbyint(std::ldexp(magnitude, -step)));
    return static_cast<std::uint16_t>(sign | (units + ((step + 24) << 10)));
}

/// One head of a tensor: rows of channels.
struct Rows {
    const void* data;
    std::int64_t stride;
    double at(std::int64_t row, std::int64_t column) const {
        return decode(static_cast<const std::uint16_t*>(data)[row * stride + column]);
    }
    void put(std::int64_t row, std::int64_t column, double value) const {
        const_cast<std::uint16_t*>(static_cast<const std::uint16_t*>(data))[row * stride + column] =
            encode(value);
    }
};

/// The rows of head `h` of entry `b`.
inline Rows rows(const void* tensor, std::int64_t b, std::int64_t batch_stride, std::int64_t h,
                 std::int64_t head_stride, std::int64_t stride) {
    return {static_cast<const std::uint16_t*>(tensor) + b * batch_stride + h * head_stride, stride};
}

/// Scaled scores of a query and the logarithm of the sum of their exponentials.
struct Scores {
    std::vector<double> value;
    double lse = 0.0;
    double weight(std::size_t key) const { return std::exp(value[key] - lse); }
};
inline Scores scores(const Rows& q, std::int64_t i, const Rows& k, std::int64_t keys, std::int64_t channels,
                     double scale) {
    Scores scores;
    double most = -INFINITY;
    for (std::int64_t j = 0; j < keys; ++j) {
        double sum = 0.0;
        for (std::int64_t c = 0; c < channels; ++c) sum += q.at(i, c) * k.at(j, c);
        scores.value.push_back(scale * sum);
        most = std::max(most, scores.value.back());
    }
    double sum = 0.0;
    for (const double value : scores.value) sum += std::exp(value - most);
    scores.lse = most + std::log(sum);
    return scores;
}

} // namespace fake
