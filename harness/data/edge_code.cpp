#include "harness/data/edge_code.hpp"

#include <algorithm>
#include <cmath>

namespace fmha::harness {
namespace {

/// Natural units between neighbouring ranks. P of the runner-up is 0 in 8-bit and fp16 P and below 2^-28 in
/// the others.
double smallest_gap(ElementType type) {
    return element_bits(type) <= 8 ? 20.0 : 40.0;
}

/// Base of the digits: 0 … base − 1 are exact in the type.
std::int64_t digit_base(ElementType type) {
    switch (type) {
    case ElementType::bf8_ocp:
    case ElementType::bf8_fnuz:
        return 8;
    case ElementType::fp4:
        return 4;
    default:
        return 16;
    }
}

/// Largest power of two (times 75/64 for wide types) that Q may hold without its products leaving fp32's
/// exact range.
double largest_weight(ElementType type) {
    switch (type) {
    case ElementType::fp8_ocp:
        return 256.0;
    case ElementType::fp8_fnuz:
        return 128.0;
    case ElementType::fp4:
        return 4.0;
    default:
        return 32768.0;
    }
}

} // namespace

std::optional<EdgeCode> EdgeCode::make(ElementType type, bool mx, std::int64_t hdim_q, double sigma) {
    EdgeCode code;
    code.base_ = digit_base(type);
    code.capacity_ = 1;
    // At most three digits: scores stay below 2^24 smallest steps and exact in fp32.
    const std::size_t most = mx ? static_cast<std::size_t>(std::min<std::int64_t>(hdim_q / 32, 4)) : 3;
    double weight = 1.0;
    while (weight * sigma < smallest_gap(type)) weight *= 2.0;
    std::int64_t channel = 0;
    for (std::size_t p = 0; p < most; ++p, weight *= static_cast<double>(code.base_)) {
        std::int64_t channels = mx ? 32 : 1;
        if (!mx)
            while (channels <= hdim_q && weight / static_cast<double>(channels) > largest_weight(type))
                channels *= 2;
        if (channel + channels > hdim_q) break;
        code.digits_.push_back({channel, channels, weight / static_cast<double>(channels)});
        channel += channels;
        code.capacity_ *= code.base_;
    }
    if (code.digits_.empty()) return std::nullopt;
    return code;
}

std::int64_t EdgeCode::digit(std::int64_t rank, std::size_t position) const {
    for (std::size_t p = 0; p < position; ++p) rank /= base_;
    return rank % base_;
}

std::int64_t EdgeCode::rank(std::int64_t j, std::int64_t seqlen_k, bool last_wins) const {
    return last_wins ? std::max<std::int64_t>(0, j - std::max<std::int64_t>(0, seqlen_k - capacity_))
                     : std::min(j, capacity_ - 1);
}

bool EdgeCode::decides(std::int64_t j, std::int64_t seqlen_k, bool last_wins) const {
    if (seqlen_k <= capacity_) return true;
    return last_wins ? rank(j, seqlen_k, true) > 0 : j < capacity_ - 1;
}

} // namespace fmha::harness
