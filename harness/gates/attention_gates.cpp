#include "harness/gates/attention_gates.hpp"

#include "harness/gates/exact_gates.hpp"
#include "harness/gates/fwd_bounded.hpp"
#include "reference/attention.hpp"
#include "reference/numerics/formats.hpp"
#include "reference/visibility.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fmha::harness {
RowSpace query_rows(const JudgeContext& context) {
    const reference::AttentionArgs& args = context.args;
    const OutputRows& rows = context.outputs.at("o").rows();
    std::vector<std::int64_t> expected_row(static_cast<std::size_t>(rows.size()), -1);
    std::int64_t next = 0;
    for (const auto& id : context.expected.rows)
        expected_row[static_cast<std::size_t>(rows.index(id))] = next++;
    return {.axis = Axis::query,
            .batch = args.shape.batch,
            .heads = args.shape.nhead_q,
            .group_size = args.shape.nhead_q / args.shape.nhead_k,
            .checked_rows = static_cast<std::int64_t>(context.expected.rows.size()),
            .all_rows = rows.size(),
            .median_partners = median(context.expected.visible_keys.values()),
            .facts = [&context, &rows, expected_row = std::move(expected_row)](const reference::RowId& id) {
                const std::int64_t row = expected_row[static_cast<std::size_t>(rows.index(id))];
                RowSpace::Facts facts{.checked = row >= 0,
                                      .length = reference::entry_lengths(context.args, id.b).seqlen_q};
                if (facts.checked)
                    facts.partners = context.expected.visible_keys(row);
                else if (!reference::end_keys(context.args, id).none())
                    facts.partners = reference::key_ranges(context.args, id).count();
                return facts;
            }};
}

Judgement judge(const JudgeContext& context) {
    Judgement judgement;
    Findings findings({query_rows(context)});
    if (context.fill != Fill::huge) {
        const ElementType o = context.outputs.at("o").type();
        judge_values(
            BoundedO(context.args, context.expected, o, context.fill, context.p_type, context.inputs),
            context.outputs, findings, judgement);
        if (context.outputs.find("lse") != nullptr)
            judge_statistic(BoundedLse(context.expected), context.outputs, findings, judgement);
    }
    detail::judge_exactly(context, findings, judgement);
    judgement.worst = findings.worst();
    judgement.maps = findings.maps();
    judgement.pattern = findings.pattern();
    return judgement;
}

PlainPass plain_pass(const reference::AttentionArgs& args, const std::vector<reference::RowId>& rows,
                     const ElementTypes& types, std::int64_t most) {
    const auto count = static_cast<std::int64_t>(rows.size());
    std::vector<reference::RowId> sample;
    PlainPass plain;
    for (std::int64_t n = 0; n < std::min(most, count); ++n) {
        const std::int64_t at = n * count / std::min(most, count);
        sample.push_back(rows[static_cast<std::size_t>(at)]);
        plain.of.push_back(at);
    }
    const reference::Table o = reference::attention_low_precision(args, sample, types, 1);
    plain.o.assign(o.values().begin(), o.values().end());
    return plain;
}

GateVerdict low_precision_yardstick(const JudgeContext& context, const ElementTypes& types,
                                    const PlainPass& plain) {
    GateVerdict g4{.gate = "G4", .tensor = "o", .required = false};
    const auto& expected = context.expected;
    const Outputs::Tensor& o = context.outputs.at("o");
    double error = 0.0, plain_error = 0.0, granularity = 0.0;
    for (std::size_t n = 0; n < plain.of.size(); ++n) {
        const double* const plain_o = &plain.o[n * static_cast<std::size_t>(expected.o.cols())];
        for (std::int64_t c = 0; c < expected.o.cols(); ++c) {
            const double exact = expected.scale_o * expected.o(plain.of[n], c);
            const double got =
                o.value(o.rows().index(expected.rows[static_cast<std::size_t>(plain.of[n])]), c);
            // A maximum passes over NaN.
            error = std::max(error, std::isnan(got) ? std::numeric_limits<double>::infinity()
                                                    : std::abs(got - exact));
            plain_error = std::max(plain_error, std::abs(plain_o[c] - exact));
            granularity =
                std::max(granularity, std::abs(reference::round_to(types.o, exact + 0.3) - 0.3 - exact));
        }
    }
    g4.ratio = error == 0.0 ? 0.0 : error / (2.0 * plain_error + 2.0 * granularity);
    g4.passed = g4.ratio <= 1.0;
    return g4;
}

GateVerdict low_precision_yardstick(const JudgeContext& context, const ElementTypes& types) {
    return low_precision_yardstick(context, types, plain_pass(context.args, context.expected.rows, types));
}

} // namespace fmha::harness
