#include "harness/gates/combine_gates.hpp"

#include "harness/data/infinity.hpp"
#include "harness/gates/exact_gates.hpp"
#include "harness/gates/fwd_bounded.hpp"
#include "reference/numerics/formats.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace fmha::harness {
namespace {

using reference::CombinedRows;

class CombinedO final : public Bounded {
  public:
    CombinedO(const CombinedRows& rows, ElementType o, std::optional<Fill> fill)
        : Bounded("o", o), rows_(rows), fill_(fill) {}

    std::int64_t rows() const override { return static_cast<std::int64_t>(rows_.rows.size()); }
    void read(std::int64_t row, BoundedRow& into) const override {
        const reference::CombineBound bound(rows_, row);
        into.id = rows_.rows[static_cast<std::size_t>(row)];
        into.resize(static_cast<std::size_t>(rows_.o.cols()));
        const bool narrow = element_bits(type()) <= 8;
        for (std::size_t n = 0; n < into.value.size(); ++n) {
            const auto c = static_cast<std::int64_t>(n);
            into.value[n] = bound.expected(c);
            into.limit[n] = bound.limit(c);
            if (narrow) into.error[n] = std::abs(rows_.scale_o) * bound.error(c);
            into.variance[n] = bound.variance(c);
        }
    }
    bool has_rms() const override { return !fill_ || rounds_independently(*fill_, type()); }
    bool has_elements() const override { return has_rms() && type() != ElementType::fp32; }
    bool has_rows() const override { return has_elements() && (!fill_ || channels_differ(*fill_)); }

  private:
    const CombinedRows& rows_;
    std::optional<Fill> fill_;
};

class CombinedLse final : public Bounded {
  public:
    explicit CombinedLse(const CombinedRows& rows) : Bounded("lse", ElementType::fp32), rows_(rows) {}

    std::int64_t rows() const override { return static_cast<std::int64_t>(rows_.lse.size()); }
    void read(std::int64_t row, BoundedRow& into) const override {
        into.id = rows_.rows[static_cast<std::size_t>(row)];
        into.resize(1);
        into.value.front() = rows_.lse[static_cast<std::size_t>(row)];
        into.limit.front() = reference::combined_lse_limit(rows_, row);
    }

  private:
    const CombinedRows& rows_;
};

RowSpace combined_rows(const SplitKvArgs& args, const CombinedRows& expected) {
    const auto rows = static_cast<std::int64_t>(expected.rows.size());
    return {.axis = Axis::query,
            .batch = args.shape.batch,
            .heads = args.shape.nhead_q,
            .checked_rows = rows,
            .all_rows = rows,
            .facts = [&args](const reference::RowId& id) {
                const std::int32_t* starts = args.lengths.seqstart_q;
                return RowSpace::Facts{.length = args.shape.mode == Mode::group
                                                     ? std::int64_t{starts[id.b + 1]} - starts[id.b]
                                                     : args.shape.seqlen_q};
            }};
}

bool has_sink(const SplitKvArgs& args, std::int64_t h) {
    return args.score.sink_logit != nullptr && args.score.sink_logit[h] != -infinity;
}

/// What is wrong in a row whose exact values are on the output's grid once they are rounded. A scale_o that is
/// no power of two is one more fp32 rounding before the last one, which decides near a tie (B.7).
detail::RowMistake differs_from(const Outputs::Tensor& o, std::int64_t index, const CombinedRows& expected,
                                std::int64_t row) {
    const reference::CombineBound bound(expected, row);
    const double product_rounding = detail::is_power_of_two(expected.scale_o) ? 0.0 : 0x1p-24;
    detail::RowMistake mistake;
    for (std::int64_t c = 0; c < o.columns(index); ++c) {
        const double exact = bound.expected(c), lost = product_rounding * std::abs(exact);
        const double target = reference::round_to(o.type(), exact);
        const double got = o.value(index, c);
        if (lost > 0.0 && got >= reference::round_to(o.type(), exact - lost) &&
            got <= reference::round_to(o.type(), exact + lost))
            continue;
        const bool plus_zero = target != 0.0 || expected.splits_taken[static_cast<std::size_t>(row)] > 0 ||
                               o.code(index, c) == 0;
        if (got == target && plus_zero) continue;
        mistake.add(c, [&] {
            return fmt::format("{} column {}: got {:.9g}, not {:.9g}", o.rows().place(o.rows().id(index)), c,
                               got, target);
        });
    }
    return mistake;
}

void judge_special_rows(const SplitKvArgs& args, const Outputs& outputs, const CombinedRows& expected,
                        Findings& findings, Judgement& judgement) {
    const Outputs::Tensor& o = outputs.at("o");
    const Outputs::Tensor* lse = outputs.find("lse");
    ExactGate empty("G5.2", "o"), single("G5.3", "o");
    bool any_empty = false, any_single = false;
    for (std::size_t row = 0; row < expected.rows.size(); ++row) {
        const reference::RowId& id = expected.rows[row];
        const std::int64_t taken = expected.splits_taken[row];
        const bool alone = taken == 1 && !has_sink(args, id.h);
        if (taken > 0 && !alone) continue;
        (taken == 0 ? any_empty : any_single) = true;
        ExactGate& gate = taken == 0 ? empty : single;
        const std::int64_t index = o.rows().index(id);
        detail::reject_row(o, id, differs_from(o, index, expected, static_cast<std::int64_t>(row)), gate,
                           findings);
        // The LSE of one split, or the sink logit, goes through unchanged.
        if (lse == nullptr || lse->value(index, 0) == expected.lse[row]) continue;
        gate.fail(fmt::format("the LSE of {} is {:.9g}, not {:.9g}", lse->rows().place(id),
                              lse->value(index, 0), expected.lse[row]));
        findings.wrong(*lse, id, -1);
    }
    if (any_empty) judgement.gates.push_back(empty.verdict());
    if (any_single) judgement.gates.push_back(single.verdict());
}

} // namespace

Outputs combined_outputs(const SplitKvArgs& args) {
    const auto rows = std::make_shared<const OutputRows>(Axis::query, reference::all_rows(args));
    Outputs outputs;
    const auto copy = [&](std::string name, const TensorView& view, Axis axis, std::int64_t columns) {
        Outputs::Tensor& tensor = outputs.add(std::move(name), view.type, rows, axis);
        for (const auto& id : rows->ids()) {
            const std::int64_t start = args.shape.mode == Mode::group ? args.lengths.seqstart_q[id.b] : 0;
            tensor.append_row(columns, [&view, &id, stored = start + id.i](std::int64_t c) {
                return load_code(view.data, view.type, view.offset(id.b, id.h, stored, c));
            });
        }
    };
    copy("o", args.o, Axis::v_channel, args.shape.hdim_v);
    if (args.lse.present()) copy("lse", args.lse, Axis::none, 1);
    return outputs;
}

Judgement judge_combined(const SplitKvArgs& args, const Outputs& outputs, const CombinedRows& expected,
                         std::optional<Fill> fill) {
    Judgement judgement;
    Findings findings({combined_rows(args, expected)});
    judge_values(CombinedO(expected, outputs.at("o").type(), fill), outputs, findings, judgement);
    if (outputs.find("lse") != nullptr) judge_statistic(CombinedLse(expected), outputs, findings, judgement);
    judge_special_rows(args, outputs, expected, findings, judgement);
    judge_finite(outputs, judgement);
    judgement.worst = findings.worst();
    judgement.maps = findings.maps();
    judgement.pattern = findings.pattern();
    return judgement;
}

} // namespace fmha::harness
