// A fault in any rule of the row form of section 20 makes it disagree with the matrix form.
#include "reference/backward.hpp"
#include "reference/row/backward_row.hpp"
#include "tests/reference/random_gradients.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <ostream>
#include <span>
#include <string>
#include <vector>

namespace fmha::reference {
namespace {

using test::RandomGradients;
using test::Wish;
using Line = std::span<const double>;

struct Fault {
    std::string name;
    Wish wish;
    BackwardParts parts;
    bool stored_bytes = false;
};

void PrintTo(const Fault& fault, std::ostream* out) {
    *out << fault.name;
}

BackwardParts with(auto BackwardParts::*part, auto faulty) {
    BackwardParts parts;
    parts.*part = faulty;
    return parts;
}
BackwardParts with_forward(auto RowParts::*part, auto faulty) {
    BackwardParts parts;
    parts.forward.*part = faulty;
    return parts;
}

std::vector<Fault> faults() {
    const Wish any, dropout{.dropout = true}, sinks{.sink_logits = true}, masked{.mask = true},
        causal{.causal = true}, biased{.elementwise = true}, alibi{.alibi = true};
    using Dropout = DropoutConstants;
    return {
        {"delta_omitted", any, with(&BackwardParts::delta, [](Line, Line) { return 0.0; })},
        {"delta_of_d_o_alone", any,
         with(&BackwardParts::delta, [](Line d_o, Line) { return row_delta(d_o, d_o); })},
        {"delta_without_last_channel", any,
         with(&BackwardParts::delta, [](Line d_o, Line o) { return row_delta(d_o, o.first(o.size() - 1)); })},
        {"lse_in_base_two", any,
         with(&BackwardParts::probability,
              [](double s, double lse) { return probability(s, lse * std::log(2.0)); })},
        {"base_two_exponential", any,
         with(&BackwardParts::probability, [](double s, double lse) { return std::exp2(s - lse); })},
        {"lse_not_subtracted", any,
         with(&BackwardParts::probability, [](double s, double) { return std::exp(s); })},
        {"bytes_of_the_generator", dropout,
         with(&BackwardParts::byte,
              [](const BwdArgs& args, const Entry&, const RandomSite& site) {
                  return random_byte(site, args.shape.nhead_q, args.dropout.seed, args.dropout.offset);
              }),
         true},
        {"byte_of_the_transposed_site", dropout,
         with(&BackwardParts::byte,
              [](const BwdArgs& args, const Entry&, const RandomSite& site) {
                  return random_byte({site.b, site.h, site.j, site.i}, args.shape.nhead_q, args.dropout.seed,
                                     args.dropout.offset);
              })},
        {"stored_byte_one_row_down", dropout,
         with(&BackwardParts::byte,
              [](const BwdArgs& args, const Entry& entry, const RandomSite& site) {
                  return dropout_byte(args, entry, {site.b, site.h, site.i > 0 ? site.i - 1 : 0, site.j});
              }),
         true},
        {"byte_of_the_next_head", dropout,
         with(&BackwardParts::byte,
              [](const BwdArgs& args, const Entry&, const RandomSite& site) {
                  return random_byte({site.b, site.h + 1, site.i, site.j}, args.shape.nhead_q,
                                     args.dropout.seed, args.dropout.offset);
              })},
        {"kept_not_rescaled", dropout,
         with(&BackwardParts::kept,
              [](std::uint8_t byte, const Dropout& d) { return byte <= d.threshold ? 1.0 : 0.0; })},
        {"dropped_and_kept_exchanged", dropout,
         with(&BackwardParts::kept,
              [](std::uint8_t byte, const Dropout& d) {
                  return byte <= d.threshold ? 0.0 : double{d.rescale};
              })},
        {"threshold_exclusive", dropout,
         with(&BackwardParts::kept,
              [](std::uint8_t byte, const Dropout& d) {
                  return byte < d.threshold ? double{d.rescale} : 0.0;
              })},
        {"delta_dropped_with_its_key", dropout,
         with(&BackwardParts::score_gradient,
              [](double p, double kept, double dp, double delta) {
                  return kept > 0.0 ? p * (kept * dp - delta) : 0.0;
              })},
        {"delta_scaled_like_d", dropout,
         with(&BackwardParts::score_gradient,
              [](double p, double kept, double dp, double delta) { return p * (kept * dp - 0.9 * delta); })},
        {"dp_not_dropped", dropout,
         with(&BackwardParts::score_gradient,
              [](double p, double, double dp, double delta) { return p * (dp - delta); })},
        {"delta_added", any,
         with(&BackwardParts::score_gradient,
              [](double p, double kept, double dp, double delta) { return p * (kept * dp + delta); })},
        {"dv_not_dropped", dropout, with(&BackwardParts::value_weight, [](double p, double) { return p; })},
        {"dv_dropped_twice", dropout,
         with(&BackwardParts::value_weight, [](double p, double kept) { return p * kept * kept; })},
        {"dbias_without_rescale", dropout,
         with(&BackwardParts::bias_gradient, [](double ds, const Dropout& d) { return ds * d.p_undrop; })},
        {"scale_forgotten", any, with(&BackwardParts::scale, [](const ScoreArgs&) { return 1.0; })},
        {"scale_squared", any,
         with(&BackwardParts::scale, [](const ScoreArgs& s) { return double{s.scale_s} * s.scale_s; })},
        {"d_not_scaled", dropout,
         with(&BackwardParts::stored_delta, [](double delta, const Dropout&) { return delta; })},
        {"d_scaled_twice", dropout,
         with(&BackwardParts::stored_delta,
              [](double delta, const Dropout& d) { return delta * d.p_undrop * d.p_undrop; })},
        {"sink_share_of_one", sinks, with(&BackwardParts::sink_share, [](double, double) { return 1.0; })},
        {"sink_share_negated", sinks,
         with(&BackwardParts::sink_share, [](double sink, double lse) { return -sink_share(sink, lse); })},
        {"sink_of_the_first_head", sinks,
         with_forward(&RowParts::sink,
                      [](const FwdArgs& args, std::int64_t) { return sink_logit(args, 0); })},
        {"first_kv_head_for_all", any,
         with(&BackwardParts::kv_head, [](const Shape&, std::int64_t) { return std::int64_t{0}; })},
        {"kv_head_modulo", any,
         with(&BackwardParts::kv_head, [](const Shape& shape, std::int64_t h) { return h % shape.nhead_k; })},
        {"reduced_head_modulo", any,
         with(&BackwardParts::key_gradient_head,
              [](const BwdArgs& args, std::int64_t h) {
                  return args.reduce_dk_dv ? h % args.shape.nhead_k : h;
              })},
        {"reduced_last_head_forgotten", any,
         with(&BackwardParts::key_gradient_head,
              [](const BwdArgs& args, std::int64_t h) {
                  const std::int64_t group = args.shape.nhead_q / args.shape.nhead_k;
                  const bool last = args.reduce_dk_dv && group > 1 && h % group == group - 1;
                  return last ? -1 : key_gradient_head(args, h);
              })},
        {"mask_one_key_wider", causal,
         with_forward(
             &RowParts::visible,
             [](const MaskArgs& mask, std::int64_t sq, std::int64_t sk, std::int64_t i, std::int64_t j) {
                 return visible(mask, sq, sk, i, j) || (j > 0 && visible(mask, sq, sk, i, j - 1));
             })},
        {"mask_transposed", masked,
         with_forward(&RowParts::visible,
                      [](const MaskArgs& mask, std::int64_t sq, std::int64_t sk, std::int64_t i,
                         std::int64_t j) { return j < sk && visible(mask, sk, sq, j, i); })},
        {"bias_omitted", biased,
         with_forward(&RowParts::bias,
                      [](const FwdArgs&, const Entry&, Decoder, const RowId&, std::int64_t) { return 0.0; })},
        {"alibi_negated", alibi,
         with_forward(&RowParts::alibi,
                      [](const MaskArgs& mask, double slope, std::int64_t sq, std::int64_t sk, std::int64_t i,
                         std::int64_t j) { return -alibi_bias(mask, slope, sq, sk, i, j); })},
        {"packed_start_forgotten", any,
         with_forward(&RowParts::entry,
                      [](const AttentionArgs& args, std::int64_t b) {
                          Entry entry = entry_in_cache(args, b);
                          if (entry.start_k > 0) --entry.start_k;
                          return entry;
                      })},
    };
}

class BackwardFaults : public testing::TestWithParam<Fault> {};
INSTANTIATE_TEST_SUITE_P(All, BackwardFaults, testing::ValuesIn(faults()),
                         [](const auto& test) { return test.param.name; });

double disagreement(const Fault& fault, std::uint64_t seed, const BackwardParts& parts) {
    const RandomGradients problem(seed, fault.wish, fault.stored_bytes);
    const GradientRequest all = problem.everything();
    GradientOptions options;
    options.threads = 1;
    return oracle_disagreement(backward(problem.args(), all, options),
                               backward_row_by_row(problem.args(), all, options, parts));
}

TEST_P(BackwardFaults, AreNoticed) {
    int noticed = 0;
    for (std::uint64_t seed = 1; seed <= 30 && noticed < 3; ++seed) {
        EXPECT_LE(disagreement(GetParam(), seed, {}), 1.0) << "without a fault, seed " << seed;
        noticed += disagreement(GetParam(), seed, GetParam().parts) > 1.0 ? 1 : 0;
    }
    EXPECT_GE(noticed, 3);
}

TEST(BackwardFaultCatalogue, HasEnoughOfThem) {
    EXPECT_GE(faults().size(), 25U);
}

} // namespace
} // namespace fmha::reference
