#include "reference/numerics/position_bias.hpp"

#include <cmath>
#include <cstdlib>

namespace fmha::reference {
namespace {

/// The slopes r, r², … of a power of two of heads.
std::vector<float> geometric_slopes(std::int64_t heads) {
    std::vector<float> slopes;
    for (std::int64_t m = 0; m < heads; ++m)
        slopes.push_back(
            static_cast<float>(std::exp2(-8.0 * static_cast<double>(m + 1) / static_cast<double>(heads))));
    return slopes;
}

} // namespace

double alibi_bias(const MaskArgs& mask, double slope, std::int64_t seqlen_q, std::int64_t seqlen_k,
                  std::int64_t i, std::int64_t j) {
    const bool anchored = mask.type == MaskType::top_left || mask.type == MaskType::bottom_right;
    if (anchored && mask.left < 0 && mask.right == 0) return slope * static_cast<double>(j);
    const bool from_bottom_right = mask.type == MaskType::bottom_right || mask.type == MaskType::no_mask;
    const std::int64_t shift = from_bottom_right ? seqlen_k - seqlen_q : 0;
    return -slope * static_cast<double>(std::abs(i + shift - j));
}

std::vector<float> default_alibi_slopes(std::int64_t heads) {
    std::int64_t power = 1;
    while (2 * power <= heads) power *= 2;
    std::vector<float> slopes = geometric_slopes(power);
    const std::vector<float> finer = geometric_slopes(2 * power);
    for (std::size_t m = 0; slopes.size() < static_cast<std::size_t>(heads); m += 2)
        slopes.push_back(finer[m]);
    return slopes;
}

} // namespace fmha::reference
