// The gradients of section 20: both forms against each other, and known answers.

#include "dispatcher/types/error.hpp"
#include "reference/backward.hpp"
#include "reference/numerics/lengths.hpp"
#include "tests/reference/random_gradients.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace fmha::reference {
namespace {

using test::one_thread;
using test::RandomGradients;
using test::Wish;

void expect_near(const std::vector<double>& x, const std::vector<double>& y, double absolute) {
    ASSERT_EQ(x.size(), y.size());
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], 1e-9 * std::abs(x[i]) + absolute) << i;
}
void expect_same_companions(const GradientTable& x, const GradientTable& y) {
    expect_near(x.magnitude, y.magnitude, 1e-25);
    expect_near(x.error, y.error, 1e-25);
    expect_near(x.variance, y.variance, 1e-25);
}

/// Counts a problem for each of its features.
void count_features(const BwdArgs& args, std::map<std::string, int>& count) {
    const Shape& shape = args.shape;
    const FwdArgs forward = forward_part(args);
    bool empty_q = false, empty_k = false, padded_q = false, padded_k = false;
    for (std::int64_t b = 0; b < shape.batch; ++b) {
        const Entry entry = entry_of(forward, b);
        const auto physical = [&](const std::int32_t* starts, std::int64_t allocated) {
            return starts != nullptr ? std::int64_t{starts[b + 1]} - starts[b] : allocated;
        };
        empty_q |= entry.seqlen_q == 0;
        empty_k |= entry.seqlen_k == 0;
        padded_q |= entry.seqlen_q < physical(args.lengths.seqstart_q, shape.seqlen_q);
        padded_k |= entry.seqlen_k < physical(args.lengths.seqstart_k, shape.seqlen_k);
    }
    const float* const sinks = args.score.sink_logit;
    const bool closed_sink =
        sinks != nullptr && std::any_of(sinks, sinks + shape.nhead_q, [](float x) { return std::isinf(x); });
    const bool group = shape.mode == Mode::group, dropout = args.dropout.p_drop > 0.0F;
    for (const auto& [feature, present] :
         {std::pair("group mode", group), std::pair("batch mode", !group),
          std::pair("queries that share a head", shape.nhead_q > shape.nhead_k),
          std::pair("reduced dK and dV", args.reduce_dk_dv),
          std::pair("head dimensions apart", shape.hdim_q != shape.hdim_v),
          std::pair("elementwise bias, and dBias", args.score.bias_type == BiasType::elementwise),
          std::pair("ALiBi", args.score.bias_type == BiasType::alibi),
          std::pair("no bias", args.score.bias_type == BiasType::no_bias),
          std::pair("dropout from the generator", dropout && !args.randval.present()),
          std::pair("dropout from stored bytes", dropout && args.randval.present()),
          std::pair("sink logits", sinks != nullptr), std::pair("a sink of -inf", closed_sink),
          std::pair("entries without queries", empty_q), std::pair("entries without keys", empty_k),
          std::pair("padding of queries, batch", padded_q && !group),
          std::pair("padding of keys, batch", padded_k && !group),
          std::pair("padding of queries, group", padded_q && group),
          std::pair("padding of keys, group", padded_k && group)})
        count[feature] += present ? 1 : 0;
    for (const auto& [type, name] : EnumTable<MaskType>::names)
        count["mask " + std::string(name)] += args.mask.type == type ? 1 : 0;
}

TEST(Backward, BothFormsAgreeOnRandomProblems) {
    std::map<std::string, int> features;
    for (std::uint64_t seed = 1; seed <= 400 && !HasFailure(); ++seed) {
        Wish wish;
        wish.long_sequences = seed % 40 == 0;
        const RandomGradients problem(seed, wish, seed % 3 == 0);
        SCOPED_TRACE("seed " + std::to_string(seed) + ": " + problem.text());
        count_features(problem.args(), features);
        const GradientRequest all = problem.everything();
        const GradientOptions options = seed % 4 == 0 ? one_thread(0.0, 0x1p-126) : one_thread();
        const Gradients by_row = backward(problem.args(), all, options, Oracle::row_by_row);
        const Gradients matrix = backward(problem.args(), all, options, Oracle::matrix);
        EXPECT_LE(oracle_disagreement(by_row, matrix), 1.0);
        EXPECT_LE(oracle_disagreement(matrix, by_row), 1.0);
        EXPECT_EQ(by_row.pairs_evaluated, matrix.pairs_evaluated);
        for (const auto member : {&Gradients::dq, &Gradients::d, &Gradients::dbias, &Gradients::dk,
                                  &Gradients::dv, &Gradients::d_sink})
            expect_same_companions(by_row.*member, matrix.*member);
    }
    for (const auto& [feature, count] : features) EXPECT_GE(count, 10) << feature;
}

TEST(Backward, CompanionsChangeNoValue) {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
        const RandomGradients problem(seed, {.long_sequences = seed % 4 == 0}, seed % 3 == 0);
        GradientOptions plain = one_thread();
        plain.companions = false;
        for (const Oracle oracle : {Oracle::row_by_row, Oracle::matrix}) {
            const Gradients with = backward(problem.args(), problem.everything(), one_thread(), oracle),
                            without = backward(problem.args(), problem.everything(), plain, oracle);
            for (const auto member : {&Gradients::dq, &Gradients::d, &Gradients::dbias, &Gradients::dk,
                                      &Gradients::dv, &Gradients::d_sink}) {
                EXPECT_EQ((with.*member).value, (without.*member).value);
                EXPECT_TRUE((without.*member).magnitude.empty() && (without.*member).error.empty() &&
                            (without.*member).variance.empty());
            }
            if (!with.dq.value.empty()) {
                EXPECT_GT(oracle_disagreement(without, with), 1.0)
                    << "nothing says how far apart they may be";
            }
        }
    }
}

/// A key of a reduced gradient is the sum of those of the query heads that share its head.
TEST(Backward, ReducedGradientsAreTheSumsOverTheHeads) {
    int compared = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        RandomGradients problem(seed, {}, seed % 3 == 0);
        BwdArgs& args = problem.args();
        const std::int64_t group = args.shape.nhead_q / args.shape.nhead_k;
        args.reduce_dk_dv = false;
        const Gradients each = backward(args, {{}, all_keys(args), false, false}, one_thread());
        args.reduce_dk_dv = true;
        const Gradients sums = backward(args, {{}, all_keys(args), false, false}, one_thread());
        ASSERT_EQ(sums.dk.lines * group, each.dk.lines);
        for (const auto member : {&Gradients::dk, &Gradients::dv}) {
            const GradientTable &sum = sums.*member, &part = each.*member;
            for (std::int64_t line = 0; line < sum.lines; ++line) {
                const KeyId& id = sums.request.keys[static_cast<std::size_t>(line)];
                for (std::int64_t c = 0; c < sum.cols; ++c) {
                    double value = 0.0, magnitude = 0.0, error = 0.0;
                    for (std::size_t n = 0; n < each.request.keys.size(); ++n) {
                        const KeyId& one = each.request.keys[n];
                        if (one.b != id.b || one.j != id.j || one.h / group != id.h) continue;
                        const std::size_t at = part.at(static_cast<std::int64_t>(n), c);
                        value += part.value[at];
                        magnitude += part.magnitude[at];
                        error += part.error[at];
                    }
                    const std::size_t at = sum.at(line, c);
                    ASSERT_NEAR(sum.value[at], value, 1e-12 * magnitude);
                    // The sum is longer, so that its rounding counts for more.
                    ASSERT_GE(sum.error[at], error * (1.0 - 1e-12));
                    compared += group > 1 ? 1 : 0;
                }
            }
        }
    }
    EXPECT_GE(compared, 1000);
}

TEST(Backward, ASampleIsThatPartOfTheWhole) {
    std::int64_t pairs_of_samples = 0, pairs_of_wholes = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        const RandomGradients problem(seed, {.long_sequences = true}, seed % 2 == 0);
        SCOPED_TRACE("seed " + std::to_string(seed) + ": " + problem.text());
        const Gradients whole = backward(problem.args(), problem.everything(), one_thread());
        GradientRequest sample{sampled_rows(problem.args(), seed, 5), sampled_keys(problem.args(), seed, 5),
                               false, false};
        std::reverse(sample.rows.begin(), sample.rows.end());
        const Gradients part = backward(problem.args(), sample, one_thread());
        // Nothing but the asked rows and keys costs anything.
        const FwdArgs forward = forward_part(problem.args());
        const Shape& shape = forward.shape;
        const std::int64_t heads = problem.args().reduce_dk_dv ? shape.nhead_q / shape.nhead_k : 1;
        std::int64_t asked = 0;
        for (const RowId& row : sample.rows) asked += entry_of(forward, row.b).seqlen_k;
        for (const KeyId& key : sample.keys) asked += heads * entry_of(forward, key.b).seqlen_q;
        EXPECT_LE(part.pairs_evaluated, asked);
        pairs_of_samples += part.pairs_evaluated;
        pairs_of_wholes += whole.pairs_evaluated;
        EXPECT_EQ(part.d_sink.lines, 0);
        EXPECT_EQ(part.dbias.lines, 0);
        const auto expect_part = [](const auto& all, const auto& some, const GradientTable& table,
                                    const GradientTable& sampled) {
            std::size_t at = 0;
            for (std::size_t n = 0; n < some.size(); ++n) {
                at = static_cast<std::size_t>(std::find(all.begin(), all.end(), some[n]) - all.begin());
                ASSERT_LT(at, all.size());
                for (std::int64_t c = 0; c < table.cols; ++c) {
                    const std::size_t x = table.at(static_cast<std::int64_t>(at), c),
                                      y = sampled.at(static_cast<std::int64_t>(n), c);
                    ASSERT_NEAR(table.value[x], sampled.value[y], 1e-12 * table.magnitude[x]);
                    ASSERT_NEAR(table.error[x], sampled.error[y], 1e-9 * table.error[x]);
                }
            }
        };
        expect_part(whole.request.rows, sample.rows, whole.dq, part.dq);
        expect_part(whole.request.keys, sample.keys, whole.dk, part.dk);
        expect_part(whole.request.keys, sample.keys, whole.dv, part.dv);
    }
    EXPECT_LT(pairs_of_samples, pairs_of_wholes / 2);
}

/// A row of 2^18 keys among 2^18 rows: a look at all pairs for it takes minutes.
TEST(Backward, OneRowCostsOneRow) {
    constexpr std::int64_t length = 1 << 18;
    std::vector<float> values(length, 0.25F), lse(length, 13.0F);
    const float slope = 0.001F;
    BwdArgs args;
    args.shape = {Mode::batch, 1, 1, 1, length, length, 0, 0, 1, 1};
    args.score.scale_s = 1.0F;
    args.score.bias_type = BiasType::alibi;
    args.score.alibi_slopes = &slope;
    args.mask = {MaskType::top_left, -1, 0, 0};
    for (TensorView* view : {&args.q, &args.k, &args.v, &args.o, &args.d_o}) {
        view->data = values.data();
        view->row_stride = 1;
    }
    args.lse.data = lse.data();
    args.lse.row_stride = 1;
    const std::clock_t start = std::clock();
    const GradientRequest one{{{0, 0, length / 2}}, {}, true, false};
    const Gradients by_row = backward(args, one, one_thread(), Oracle::row_by_row),
                    matrix = backward(args, one, one_thread(), Oracle::matrix);
    EXPECT_EQ(by_row.pairs_evaluated, length / 2 + 1);
    EXPECT_EQ(matrix.pairs_evaluated, length / 2 + 1);
    EXPECT_LE(oracle_disagreement(by_row, matrix), 1.0);
    expect_same_companions(by_row.dq, matrix.dq);
    EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 20.0);
}

/// The worked example of 21.2.
struct Worked {
    std::array<float, 3> q{1, 2, -1}, o{}, lse{}, d_o{1, -2, 0.5F};
    std::array<float, 4> k{1, 0, -1, 2}, v{1, 2, 4, -8};
    std::array<float, 1> sink{1};
    std::array<std::uint8_t, 12> bytes{};
    BwdArgs args;

    Worked(bool with_sink, bool with_dropout) {
        args.shape = {Mode::batch, 1, 1, 1, 3, 4, 0, 0, 1, 1};
        const auto view = [](auto& values) {
            TensorView out;
            out.data = values.data();
            out.row_stride = 1;
            return out;
        };
        args.q = view(q);
        args.k = view(k);
        args.v = view(v);
        args.o = view(o);
        args.d_o = view(d_o);
        args.lse = view(lse);
        args.score.scale_s = 1.0F;
        if (with_sink) args.score.sink_logit = sink.data();
        if (with_dropout) {
            args.dropout.p_drop = 0.25F;
            constexpr std::array<int, 12> keep{1, 0, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1};
            for (std::size_t n = 0; n < keep.size(); ++n) bytes[n] = keep[n] != 0 ? 0 : 255;
            args.randval.data = bytes.data();
            args.randval.type = ElementType::uint8;
            args.randval.row_stride = 4;
        }
    }
    /// O and LSE by the formulas, into fp32.
    void forward() {
        const std::array<double, 12> kept = [&] {
            std::array<double, 12> out{};
            for (std::size_t n = 0; n < out.size(); ++n)
                out[n] = !args.randval.present() ? 1.0 : bytes[n] == 0 ? 1.0 / 0.75 : 0.0;
            return out;
        }();
        for (std::size_t i = 0; i < 3; ++i) {
            double sum = args.score.sink_logit != nullptr ? std::exp(double{sink[0]}) : 0.0, value = 0.0;
            for (std::size_t j = 0; j < 4; ++j) {
                const double weight = std::exp(double{q[i]} * k[j]);
                sum += weight;
                value += weight * kept[4 * i + j] * v[j];
            }
            lse[i] = static_cast<float>(std::log(sum));
            o[i] = static_cast<float>(value / sum);
        }
    }
};

TEST(Backward, GivesTheKnownAnswers) {
    for (const Oracle oracle : {Oracle::row_by_row, Oracle::matrix}) {
        Worked plain(false, false);
        plain.forward();
        const GradientRequest all{all_rows(plain.args), all_keys(plain.args), true, false};
        const Gradients got = backward(plain.args, all, one_thread(), oracle);
        const auto expect = [](const GradientTable& table, const std::vector<double>& want) {
            ASSERT_GE(table.value.size(), want.size());
            // O and LSE are stored in fp32.
            for (std::size_t n = 0; n < want.size(); ++n) EXPECT_NEAR(table.value[n], want[n], 4e-6) << n;
        };
        expect(got.d, {-4.61190821, 13.5246393, 1.44004908});
        expect(got.dq, {-3.31000235, 2.51100218, -0.791281067});
        expect(got.dk, {-2.22331025, 0.12517258, -0.176772662, 2.27491033});
        expect(got.dv, {0.046337151, 0.173901325, 0.349727716, -1.06996619});
        expect(got.dbias, {1.32936463, 0.576190237, 0.276085749, -2.18164062});
        for (const auto& [dropout, want] : {std::pair(false, -0.164344781), std::pair(true, 0.561064263)}) {
            Worked sink(true, dropout);
            sink.forward();
            const Gradients of_sink = backward(sink.args, {{}, {}, false, true}, one_thread(), oracle);
            expect(of_sink.d_sink, {want});
        }
    }
}

TEST(Backward, RowsThatSeeNothingAndKeysThatNobodySeesHaveNoGradient) {
    const RandomGradients problem(3, {.mask = true});
    BwdArgs args = problem.args();
    args.mask = {MaskType::window_generic, -1, 3, 0}; // row i sees keys i + 1, i + 2 and i + 3 only
    for (const Oracle oracle : {Oracle::row_by_row, Oracle::matrix}) {
        const Gradients got = backward(args, {{}, all_keys(args), false, false}, one_thread(), oracle);
        for (std::size_t n = 0; n < got.request.keys.size(); ++n)
            if (got.request.keys[n].j == 0)
                for (std::int64_t c = 0; c < args.shape.hdim_v; ++c) {
                    const std::size_t at = got.dv.at(static_cast<std::int64_t>(n), c);
                    EXPECT_EQ(got.dv.value[at], 0.0);
                    EXPECT_EQ(got.dv.error[at], 0.0);
                }
    }
}

TEST(Backward, RefusesWhatItDoesNotHave) {
    const RandomGradients problem(5);
    BwdArgs args = problem.args();
    EXPECT_THROW(backward(args, {{{0, 0, 1 << 20}}, {}, false, false}), Error);
    EXPECT_THROW(backward(args, {{}, {{99, 0, 0}}, false, false}), Error);
    EXPECT_THROW(backward(args, {{}, {{0, args.shape.nhead_q, 0}}, false, false}), Error);
    args.score.logits_soft_cap = 2.0F;
    EXPECT_THROW(backward(args, {}), ProblemError);
    args.score.logits_soft_cap = 0.0F;
    args.mask.sink = 1;
    EXPECT_THROW(backward(args, {}), ProblemError);
}

} // namespace
} // namespace fmha::reference
