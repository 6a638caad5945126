#include "harness/data/tie_values.hpp"
#include "harness/gates/exact_gates.hpp"
#include "reference/attention.hpp"
#include "reference/bounds.hpp"
#include "reference/numerics/formats.hpp"
#include "reference/visibility.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace fmha::harness::detail {
namespace {

/// Keys of a row by the value that the fill `ties` gave them.
struct Parity {
    std::int64_t even = 0, odd = 0;

    static Parity of(const reference::KeyRanges& keys) {
        const auto evens_below = [](std::int64_t j) { return (j + 1) / 2; };
        const std::int64_t even = evens_below(keys.sink_end) - evens_below(keys.sink_begin) +
                                  evens_below(keys.end) - evens_below(keys.first);
        return {even, keys.count() - even};
    }
    std::int64_t count() const { return even + odd; }
};

/// Why the exact value of a row may be another than the mean of its V rows; empty when it is that mean.
std::string not_a_mean(const JudgeContext& context) {
    const reference::AttentionArgs& args = context.args;
    if (args.score.logits_soft_cap != 0.0F || args.dropout.p_drop != 0.0F ||
        args.score.bias_type != BiasType::no_bias || args.score.sink_logit != nullptr)
        return "weights are not equal under a soft-cap, dropout, a bias or a sink logit";
    if (context.outputs.at("o").type() == ElementType::fp32)
        return "an fp32 sum of values has no tie in fp32";
    if (!is_power_of_two(context.expected.scale_o)) return "scale_o is no power of two";
    return {};
}

/// What is wrong in a row of `ties`.
RowMistake differs_from_mean(const JudgeContext& context, const reference::RowId& id, const Parity& keys) {
    const Outputs::Tensor& o = context.outputs.at("o");
    const Shape& shape = context.args.shape;
    const std::int64_t hk = id.h / (shape.nhead_q / shape.nhead_k), index = o.rows().index(id);
    const auto n = static_cast<double>(keys.count());
    RowMistake mistake;
    for (std::int64_t c = 0; c < o.columns(index); ++c) {
        const double sum =
            static_cast<double>(keys.even) * reference::value_of(context.args, id.b, hk, 0, c) +
            static_cast<double>(keys.odd) * reference::value_of(context.args, id.b, hk, 1, c);
        const double exact = context.expected.scale_o * sum / n;
        if (o.value(index, c) == reference::round_to(o.type(), exact)) continue;
        mistake.add(c, [&] {
            return fmt::format("{} column {}: got {:.9g}, the exact value {:.9g} rounds to {:.9g}",
                               o.rows().place(id), c, o.value(index, c), exact,
                               reference::round_to(o.type(), exact));
        });
    }
    return mistake;
}

/// Rows of 2, 4, 8 … keys, because only their mean is exact in fp32; those with as many even as odd keys are ties.
void judge_means(const JudgeContext& context, Findings& findings, ExactGate& gate) {
    const Outputs::Tensor& o = context.outputs.at("o");
    std::int64_t ties = 0;
    for (const auto& id : o.rows().ids()) {
        const Parity keys = Parity::of(reference::key_ranges(context.args, id));
        if (keys.count() < 2 || !is_power_of_two(static_cast<double>(keys.count()))) continue;
        ties += keys.even == keys.odd ? 1 : 0;
        reject_row(o, id, differs_from_mean(context, id, keys), gate, findings);
    }
    if (ties == 0) gate.fail("no row is a tie: none sees 2, 4, 8 … keys, half of them at even positions");
}

/// Whether each tile of a row's keys, of any size, has a key of weight 1.
bool sees_from_the_first(const reference::KeyRanges& keys) {
    return keys.sinks() == 0 && keys.first == 0 && keys.end >= 2;
}

void judge_dropped_weights(const JudgeContext& context, Findings& findings, ExactGate& gate) {
    const Outputs::Tensor& o = context.outputs.at("o");
    std::int64_t decided = 0;
    for (const auto& id : o.rows().ids()) {
        if (!sees_from_the_first(reference::key_ranges(context.args, id))) continue;
        ++decided;
        reject_row(o, id, differs_from_v_row(context, id, 0), gate, findings);
    }
    if (decided == 0) gate.fail("no row has a weight that is a tie: none sees the first two keys and no gap");
}

/// Why the kernel may keep the weights that must become 0; empty when it loses them. One that casts P with a smaller pre-scale, or
/// flushes small weights as CDNA 2 does, loses them as surely as one for which they are ties.
std::string keeps_weights(const JudgeContext& context) {
    const int exponent = tie_weight_exponent(context.p_type);
    if (exponent == 0) return "no power of two is a tie of P's type";
    if (context.expected.numerics.normalised_p)
        return "the kernel casts P after the division, so that its weights are no ties";
    if (context.expected.numerics.f_p < std::ldexp(1.0, -exponent))
        return "the kernel casts P with a larger pre-scale, so that its weights are no ties";
    return {};
}

/// T-6 lets a kernel of others cast P as it likes, or not at all, so it may keep weights that become 0 in ours, some or all of them.
/// Then O lies between the exact values without them and with them, within the limit that B.2 has beside the floor of P.
void judge_kept_or_dropped(const JudgeContext& context, Findings& findings, Judgement& judgement) {
    // A quotient, or a product with another pre-scale, may be rounded to more than the weight is.
    if (!not_a_mean(context).empty() || !has_exact_prescale(context) ||
        context.expected.numerics.normalised_p)
        return;
    const Outputs::Tensor& o = context.outputs.at("o");
    reference::ForwardRows expected = context.expected;
    expected.numerics.f_p = 0.0;
    ExactGate gate("exact", "o");
    bool any = false;
    for (std::int64_t row = 0; row < expected.o.rows(); ++row) {
        const auto& id = expected.rows[static_cast<std::size_t>(row)];
        if (!sees_from_the_first(reference::key_ranges(context.args, id))) continue;
        any = true;
        const std::int64_t hk = id.h / (context.args.shape.nhead_q / context.args.shape.nhead_k);
        const reference::RowBound bound(expected, row);
        for (std::int64_t c = 0; c < expected.o.cols(); ++c) {
            const double kept = bound.expected(c), limit = bound.limit(c);
            const double dropped = expected.scale_o * reference::value_of(context.args, id.b, hk, 0, c);
            const double got = o.value(o.rows().index(id), c);
            if (got >= std::min(kept, dropped) - limit && got <= std::max(kept, dropped) + limit) continue;
            gate.fail(fmt::format("{} column {}: got {:.9g}, expected {:.9g}, or {:.9g} where P loses its "
                                  "smallest weights, ± {:.3g}",
                                  o.rows().place(id), c, got, kept, dropped, limit));
            findings.wrong(o, id, c);
        }
    }
    if (any) judgement.gates.push_back(gate.verdict());
}

} // namespace

void judge_tie_rows(const JudgeContext& context, Findings& findings, Judgement& judgement) {
    const bool weights = context.fill == Fill::weight_ties;
    if (weights && context.inputs == InputOrigin::own_bytes)
        return judge_kept_or_dropped(context, findings, judgement);
    if (context.inputs != InputOrigin::fill || (!weights && context.fill != Fill::ties)) return;
    ExactGate gate("exact", "o");
    std::string excuse = not_a_mean(context);
    if (excuse.empty() && weights) excuse = keeps_weights(context);
    if (excuse.empty() && !weights && !has_exact_prescale(context))
        excuse = "P's pre-scale is no power of two, so that sums of weights are rounded";
    if (!excuse.empty())
        gate.fail(excuse);
    else if (weights)
        judge_dropped_weights(context, findings, gate);
    else
        judge_means(context, findings, gate);
    judgement.gates.push_back(gate.verdict());
}

} // namespace fmha::harness::detail
