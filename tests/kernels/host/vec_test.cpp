#include "kernels/targets/host/tile.hpp"
#include "kernels/targets/host/vec.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace fmha::host_target::test {
namespace {

TEST(Exp2, StaysBelowItsDeclaredRelativeError) {
    double worst = 0;
    for (int i = 0; i <= 2'000'000; ++i) {
        const float x = -125.9F + static_cast<float>(i) * (250.0F / 2'000'000);
        const double want = std::exp2(static_cast<double>(x));
        worst = std::max(worst, std::abs(exp2(x) - want) / want);
    }
    EXPECT_LT(worst, 0x1p-22);
}

TEST(Exp2, IsExactWhereTheProgramReliesOnIt) {
    EXPECT_EQ(exp2(0.0F), 1.0F);
    EXPECT_EQ(exp2(-0.0F), 1.0F);
    EXPECT_EQ(exp2(-INFINITY), 0.0F);
    EXPECT_EQ(exp2(-1e30F), 0.0F);
    for (int n = -126; n <= 127; ++n) EXPECT_EQ(exp2(static_cast<float>(n)), std::ldexp(1.0F, n));
}

TEST(Tanh, StaysBelowItsDeclaredAbsoluteError) {
    double worst = 0;
    for (int i = -400'000; i <= 400'000; ++i) {
        const float x = static_cast<float>(i) * 5e-5F;
        worst = std::max(worst, std::abs(tanh(splat(x))[0] - std::tanh(static_cast<double>(x))));
    }
    EXPECT_LT(worst, 0x1p-20);
    EXPECT_EQ(tanh(splat(-INFINITY))[0], -1.0F);
}

TEST(Product, MatchesADoubleLoopForEveryNumberOfRows) {
    std::mt19937 random(3);
    std::uniform_int_distribution<int> digit(-4, 4); // small integers: every sum is exact
    for (int rows = 1; rows <= 40; ++rows) {
        const int depth = 1 + rows % 7, cols = 3 + rows, stride = round_up(cols, panel_columns),
                  a_stride = 16;
        const auto size = [](int a, int b) {
            return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
        };
        Scratch<float> acc_memory(size(rows, stride)), a_memory(size(rows, a_stride)),
            b_memory(size(depth, stride));
        const FloatTile acc{acc_memory.get(), rows, cols, stride},
            a{a_memory.get(), rows, a_stride, a_stride};
        const Panels b{b_memory.get(), depth, cols};
        const int first = 2;
        const auto b_at = [&](int d, int c) -> float& {
            return b.panel(c / panel_columns)[d * panel_columns + c % panel_columns];
        };
        for (int r = 0; r < rows; ++r)
            for (int d = 0; d < a_stride; ++d) a.row(r)[d] = static_cast<float>(digit(random));
        for (int d = 0; d < depth; ++d)
            for (int c = 0; c < cols; ++c) b_at(d, c) = static_cast<float>(digit(random));
        for (int r = 0; r < rows; ++r)
            for (int c = 0; c < cols; ++c) acc.row(r)[c] = 1.0F;
        multiply_add(acc, a, first, b, 2.0F);
        for (int r = 0; r < rows; ++r)
            for (int c = 0; c < cols; ++c) {
                float want = 1.0F;
                for (int d = 0; d < depth; ++d) want += 2.0F * a.row(r)[first + d] * b_at(d, c);
                ASSERT_EQ(acc.row(r)[c], want) << rows << " rows, element " << r << ", " << c;
            }
    }
}

} // namespace
} // namespace fmha::host_target::test
