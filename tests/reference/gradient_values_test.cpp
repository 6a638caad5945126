// The gradients against finite differences of the loss, and their limits against those of B.9 by hand.

#include "reference/backward.hpp"
#include "reference/numerics/lengths.hpp"
#include "tests/reference/random_gradients.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

namespace fmha::reference {
namespace {

using test::one_thread;
using test::RandomGradients;
using test::Wish;

/// Central differences of fourth order of the loss Σ dO·O, exact in binary64, along one stored element.
double difference(const RandomGradients& problem, const std::vector<RowId>& rows,
                  const std::function<void(double)>& move) {
    const FwdArgs forward = forward_part(problem.args());
    const auto loss = [&](double by) {
        move(by);
        const ForwardRows result =
            reference::forward(forward, rows, {.companions = false, .numerics = {}, .threads = 1});
        double sum = 0.0;
        for (std::size_t n = 0; n < rows.size(); ++n) {
            const auto [b, h, i] = rows[n];
            const std::int64_t row = entry_of(forward, b).start_q + i;
            const TensorView& d_o = problem.args().d_o;
            for (std::int64_t c = 0; c < forward.shape.hdim_v; ++c) {
                float x = 0.0F;
                std::memcpy(&x, static_cast<const float*>(d_o.data) + d_o.offset(b, h, row, c), 4);
                sum += double{x} * result.o(static_cast<std::int64_t>(n), c);
            }
        }
        return sum;
    };
    constexpr double step = 0x1p-8;
    const double near = loss(step) - loss(-step), far = loss(2 * step) - loss(-2 * step);
    move(0.0);
    return (8.0 * near - far) / (12.0 * step);
}

class Differences : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Kinds, Differences, testing::Values(0, 1, 2, 3, 4));

TEST_P(Differences, OfTheForwardLossAreTheGradients) {
    const std::array<Wish, 5> wishes{Wish{}, Wish{.elementwise = true}, Wish{.dropout = true},
                                     Wish{.elementwise = true, .dropout = true, .sink_logits = true},
                                     Wish{.alibi = true, .sink_logits = true, .mask = true}};
    int problems = 0, checked = 0;
    std::int64_t channel = 0; // another one for each row and key
    for (std::uint64_t seed = 1; problems < 4; ++seed) {
        RandomGradients problem(seed, wishes[static_cast<std::size_t>(GetParam())]);
        BwdArgs& args = problem.args();
        const std::vector<RowId> rows = all_rows(args);
        const std::vector<KeyId> keys = all_keys(args);
        if (args.q.type != ElementType::fp32 || rows.empty() || keys.empty()) continue;
        ++problems;
        SCOPED_TRACE("seed " + std::to_string(seed) + ": " + problem.text());
        const Gradients got = backward(args, problem.everything(), one_thread());
        const FwdArgs forward = forward_part(args);
        const auto check = [&](float* element, double gradient, const char* what) {
            const float before = *element;
            if (!std::isfinite(before)) return;
            const double seen =
                difference(problem, rows, [&](double by) { *element = static_cast<float>(before + by); });
            *element = before;
            ++checked;
            EXPECT_NEAR(seen, gradient, 2e-4 * (1.0 + std::abs(gradient))) << what;
        };
        // K and V serve all heads of their group: dK_kv is the sum, which the kernel or the caller adds up (W-11).
        const std::int64_t group_size = args.reduce_dk_dv ? 1 : args.shape.nhead_q / args.shape.nhead_k;
        for (std::size_t n = 0; n < rows.size(); n += rows.size() / 5 + 1) {
            const auto [b, h, i] = rows[n];
            const std::int64_t row = entry_of(forward, b).start_q + i;
            const std::int64_t c = channel++ % args.shape.hdim_q;
            check(static_cast<float*>(args.q.data) + args.q.offset(b, h, row, c),
                  got.dq.value[got.dq.at(static_cast<std::int64_t>(n), c)], "dq");
            if (args.score.bias_type != BiasType::elementwise || args.bias.batch_stride == 0 ||
                entry_of(forward, b).seqlen_k == 0)
                continue;
            const std::int64_t j = i % entry_of(forward, b).seqlen_k;
            check(static_cast<float*>(args.bias.data) + args.bias.offset(b, h, row, j),
                  got.dbias.value[got.dbias.at(static_cast<std::int64_t>(n), j)], "dbias");
        }
        for (std::size_t n = 0; n < keys.size(); n += keys.size() / 5 + 1) {
            const auto [b, h, j] = keys[n];
            const std::int64_t hk = h / group_size;
            const std::int64_t of_k = channel % args.shape.hdim_q, of_v = channel % args.shape.hdim_v;
            ++channel;
            double dk = 0.0, dv = 0.0;
            for (std::size_t m = 0; m < keys.size(); ++m)
                if (keys[m].b == b && keys[m].j == j && keys[m].h / group_size == hk) {
                    dk += got.dk.value[got.dk.at(static_cast<std::int64_t>(m), of_k)];
                    dv += got.dv.value[got.dv.at(static_cast<std::int64_t>(m), of_v)];
                }
            const std::int64_t row = entry_of(forward, b).start_k + j;
            check(static_cast<float*>(args.k.data) + args.k.offset(b, hk, row, of_k), dk, "dk");
            check(static_cast<float*>(args.v.data) + args.v.offset(b, hk, row, of_v), dv, "dv");
        }
        for (std::int64_t h = 0; args.score.sink_logit != nullptr && h < args.shape.nhead_q; ++h)
            check(const_cast<float*>(args.score.sink_logit) + h,
                  got.d_sink.value[static_cast<std::size_t>(h)], "d_sink");
    }
    EXPECT_GE(checked, 40);
}

TEST(GradientBound, FollowsTheFormulaOfTheLimit) {
    Gradients gradients;
    gradients.numerics.u_o = 0x1p-11;
    gradients.numerics.f_o = 0x1p-25;
    gradients.numerics.u_p = 0x1p-11;
    const GradientTable table{1, 1, {3.0}, {0.0}, {0.5}, {0.25}};
    const GradientBound tag(gradients, table, 0, GradientBound::Stored::tag);
    EXPECT_DOUBLE_EQ(tag.limit(0), (1.0 + 0x1p-11) * 0.5 + 3.0 * 0x1p-11 + 0x1p-25);
    EXPECT_DOUBLE_EQ(tag.variance(0), 9.0 * 0x1p-22 / 3.0 + 0.25 + 0x1p-50 / 3.0);
    const GradientBound fp32(gradients, table, 0, GradientBound::Stored::fp32);
    EXPECT_DOUBLE_EQ(fp32.limit(0), (1.0 + 0x1p-24) * 0.5 + 3.0 * 0x1p-24 + 0x1p-150);
    gradients.numerics.u_p = 0.0; // the tag fp32
    EXPECT_DOUBLE_EQ(GradientBound(gradients, table, 0, GradientBound::Stored::tag).limit(0),
                     (1.0 + 0x1p-11) * 0.5 / 8.0 + 3.0 * 0x1p-11 + 0x1p-25);
}

/// One row that sees one key, of one channel of Q and K and `hdim_v` of the others.
template <std::size_t hdim_v = 1>
struct OnePair {
    std::array<float, 1> q{2}, k{0.5F}, lse{1};
    std::array<float, hdim_v> v{3}, o{3}, d_o{-2};
    BwdArgs args;

    OnePair() {
        args.shape = {Mode::batch, 1, 1, 1, 1, 1, 0, 0, 1, static_cast<std::int64_t>(hdim_v)};
        args.score.scale_s = 1.0F;
        for (const auto& [view, data] : {std::pair(&args.q, q.data()), std::pair(&args.k, k.data()),
                                         std::pair(&args.v, v.data()), std::pair(&args.o, o.data()),
                                         std::pair(&args.lse, lse.data()), std::pair(&args.d_o, d_o.data())})
            view->data = data;
    }
    OnePair(const OnePair&) = delete; // `args` point into it
    OnePair& operator=(const OnePair&) = delete;

    Gradients gradients(const GradientOptions& options, Oracle oracle) const {
        return backward(args, {{{0, 0, 0}}, {{0, 0, 0}}, true, false}, options, oracle);
    }
};

/// E of B.9 for one row and one key, by hand.
TEST(GradientBound, HoldsTheErrorsOfTheTable) {
    const OnePair pair;
    GradientOptions options = one_thread();
    options.numerics.u_m = 0x1p-12;
    constexpr double u32 = 0x1p-24, u = 0x1p-11, f = 0x1p-25, m = 0x1p-12;
    const auto grown = [](double n) { return std::expm1(8.0 * std::sqrt(n) * u32 + n * u32 * u32); };
    const auto strict = 1.0 * u32 / (1.0 - u32);
    // s = 1 = LSE, p = 1, dP = −6 = Δ, dS = 0, κ = 1.
    const double e_p = std::expm1(grown(3) + 2 * m + 4 * u32 * 3.0) + 0x1p-22;
    const double e_ds = grown(3) * 12.0 + 2 * m * 6.0 + 4 * u32 * 12.0 + 0x1p-126 * 12.0 + 0x1p-149;
    const double e_c = e_ds * (1.0 + u) + f;
    const double growth_keys = grown(1) + strict + m, growth_rows = grown(1) + m;
    for (const Oracle oracle : {Oracle::row_by_row, Oracle::matrix}) {
        const Gradients got = pair.gradients(options, oracle);
        EXPECT_NEAR(got.dbias.error[0], e_ds, 1e-15 * e_ds);
        EXPECT_NEAR(got.dq.error[0], 0.5 * e_c * (1.0 + growth_keys), 1e-14 * e_c);
        EXPECT_NEAR(got.dk.error[0], 2.0 * e_c * (1.0 + growth_rows), 1e-14 * e_c);
        const double e_dv = 2.0 * (e_p + u + m + 8 * u32 + grown(1) + f);
        EXPECT_NEAR(got.dv.error[0], e_dv, 1e-14 * e_dv);
        EXPECT_NEAR(got.d.error[0], grown(2) * 6.0 + 2 * u32 * 6.0, 1e-18);
        const double zeta = (grown(3) + 2 * m) / 8.0 + 5.0 * u32 + 0x1p-22;
        EXPECT_NEAR(got.dv.variance[0], 4.0 * (u * u / 3.0 + zeta * zeta), 1e-20);
        const double noise = grown(3) * 12.0 / 8.0;
        EXPECT_NEAR(got.dq.variance[0], 0.25 * noise * noise, 1e-14 * noise * noise);
        EXPECT_NEAR(got.dk.variance[0], 4.0 * noise * noise, 1e-14 * noise * noise);
    }
}

/// The cast of a P that is normal, of one that is not, which has a fixed step, and of one that is lost whole; and an exponential that is.
TEST(GradientBound, HasTheRoundingOfSmallWeights) {
    OnePair pair;
    pair.o[0] = 1.0F;
    GradientOptions options = one_thread();
    options.numerics.u_o = 0x1p-11;
    options.numerics.f_o = 0x1p-25;
    const auto expect_errors = [&](float p, double of_p, double of_ds) {
        pair.lse[0] = 1.0F - std::log(p);
        for (const Oracle oracle : {Oracle::row_by_row, Oracle::matrix}) {
            const Gradients got = pair.gradients(options, oracle);
            EXPECT_NEAR(got.dv.variance[0], 4.0 * of_p, 0.02 * of_p) << p;    // dO² = 4
            EXPECT_NEAR(got.dq.variance[0], 0.25 * of_ds, 0.02 * of_ds) << p; // K² = 0.25
            EXPECT_NEAR(got.dk.variance[0], 4.0 * of_ds, 0.02 * of_ds) << p;  // Q² = 4
        }
    };
    // dP = −6 and Δ = −2, so that dS is −4p; 2^-14 is the smallest normal number of fp16, and 2^-25 half its smallest one.
    expect_errors(0x1p-10F, 0x1p-42 / 3.0, 0x1p-38 / 3.0);
    expect_errors(0x1p-15F, 2.0 * 0x1p-50 / 3.0, 0x1p-48 / 3.0);
    expect_errors(0x1p-20F, 2.0 * 0x1p-50 / 3.0, 2.0 * 0x1p-50 / 3.0);
    expect_errors(0x1p-30F, 2.0 * 0x1p-60, 2.0 * 0x1p-56);
    // With a wide type P is no smaller than an fp32 exponential can be; dS is (κ|dP| + |Δ|)·2^-126 off.
    options.numerics.u_p = options.numerics.u_o = 0x1p-9;
    options.numerics.f_p = 0x1p-126;
    options.numerics.f_o = 0x1p-134;
    expect_errors(0x1p-128F, 2.0 * 0x1p-256, 64.0 * 0x1p-252 + 2.0 * 16.0 * 0x1p-256);
}

/// fp32 rounds a product below 2^-126 by up to 2^-150, whatever its size.
TEST(GradientBound, HasRoomForProductsThatUnderflow) {
    OnePair<4> pair;
    pair.q[0] = pair.k[0] = 1.0F;
    pair.v.fill(0.0F);
    pair.o.fill(3.0F * 0x1p-149F);
    pair.d_o.fill(0.5F);
    volatile float in_fp32 = 0.0F;
    for (std::size_t c = 0; c < pair.o.size(); ++c) {
        volatile float product = pair.d_o[c] * pair.o[c];
        in_fp32 = in_fp32 + product;
    }
    for (const Oracle oracle : {Oracle::row_by_row, Oracle::matrix}) {
        const Gradients got = pair.gradients(one_thread(), oracle);
        const double off = std::abs(in_fp32 - got.d.value[0]);
        EXPECT_EQ(off, 0x1p-148);
        EXPECT_GE(got.d.error[0], off);
        EXPECT_LE(got.d.error[0], 2.0 * off);
    }
}

} // namespace
} // namespace fmha::reference
