#pragma once

#include <array>
#include <cstddef>
#include <cstring>

namespace fmha::hip_target {

/// sums[i][j] += Σ left[i][d] · right[d][j] for i < `lines` and j < `columns`, in binary64 and in the order of d. All three are stored by lines, of
/// `depth` and of `stride` numbers. The sums stay in registers as long as there are no more than 32.
template <std::size_t lines, std::size_t columns>
inline void add_products(double* sums, const double* left, const double* right, std::size_t depth,
                         std::size_t stride) {
    constexpr std::size_t lanes = 4, vectors = columns / lanes;
    static_assert(columns % lanes == 0);
    using Vector = double __attribute__((vector_size(lanes * sizeof(double))));
    std::array<std::array<Vector, vectors>, lines> sum;
    for (std::size_t i = 0; i < lines; ++i) std::memcpy(&sum[i], sums + i * stride, sizeof sum[i]);
    for (std::size_t d = 0; d < depth; ++d) {
        for (std::size_t v = 0; v < vectors; ++v) {
            Vector part;
            std::memcpy(&part, right + d * stride + v * lanes, sizeof part);
            for (std::size_t i = 0; i < lines; ++i) sum[i][v] += left[i * depth + d] * part;
        }
    }
    for (std::size_t i = 0; i < lines; ++i) std::memcpy(sums + i * stride, &sum[i], sizeof sum[i]);
}

} // namespace fmha::hip_target
