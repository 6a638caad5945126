#include "harness/gates/split_gates.hpp"

#include "harness/data/infinity.hpp"
#include "harness/gates/exact_gates.hpp"
#include "harness/gates/fwd_bounded.hpp"
#include "reference/attention.hpp"
#include "reference/bounds.hpp"
#include "reference/visibility.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>

namespace fmha::harness {
namespace {

/// O and LSE of one split as those of a forward problem.
Outputs outputs_of_split(const Outputs& all, const SplitKvArgs& args, std::int64_t split,
                         const std::shared_ptr<const OutputRows>& rows) {
    Outputs outputs;
    for (const auto& [name, of_all] : {std::pair("o", "o_acc"), std::pair("lse", "lse_acc")}) {
        const Outputs::Tensor& from = all.at(of_all);
        Outputs::Tensor& into = outputs.add(name, from.type(), rows, from.column_axis());
        for (const auto& id : rows->ids()) {
            const std::int64_t row = from.rows().index({id.b, id.h * args.partials.num_splits + split, id.i});
            into.append_row(from.columns(row), [&](std::int64_t c) { return from.code(row, c); });
        }
    }
    return outputs;
}

/// "o" of one split is a part of "o_acc".
std::string stored_name(const std::string& name) {
    return name == "o" || name == "lse" ? name + "_acc" : name;
}

/// The worst verdict of every gate over all splits.
class WorstGates {
  public:
    void add(GateVerdict gate, std::int64_t split) {
        gate.tensor = stored_name(gate.tensor);
        if (!gate.detail.empty()) gate.detail = fmt::format("split {}: {}", split, gate.detail);
        const auto [at, is_new] = by_name_.emplace(std::pair(gate.gate, gate.tensor), gates_.size());
        if (is_new)
            gates_.push_back(std::move(gate));
        else if (GateVerdict& worst = gates_[at->second];
                 worst.passed && (!gate.passed || gate.ratio > worst.ratio))
            worst = std::move(gate);
    }
    bool has(std::string_view gate) const {
        return std::ranges::any_of(gates_, [&](const GateVerdict& verdict) { return verdict.gate == gate; });
    }
    std::vector<GateVerdict> take() { return std::move(gates_); }

  private:
    std::map<std::pair<std::string, std::string>, std::size_t> by_name_;
    std::vector<GateVerdict> gates_;
};

/// Rows of all splits that see a key of their split.
std::int64_t seeing_rows(const SplitKvArgs& args, const OutputRows& rows) {
    std::int64_t seeing = 0;
    for (std::int64_t split = 0; split < args.partials.num_splits; ++split) {
        const reference::AttentionArgs of_split = reference::attention_of(args, split);
        seeing += std::ranges::count_if(rows.ids(), [&](const reference::RowId& id) {
            return !reference::end_keys(of_split, id).none();
        });
    }
    return seeing;
}

/// The limit of B.7 on one row of the final O, and of its LSE.
class WholeRow {
  public:
    WholeRow(const WholeJudgeContext& context, std::int64_t row)
        : context_(context), row_(row),
          combined_row_(static_cast<std::int64_t>(
              std::ranges::lower_bound(context.combined.rows,
                                       context.expected.rows[static_cast<std::size_t>(row)]) -
              context.combined.rows.begin())),
          combined_(context.combined, combined_row_) {
        for (const reference::ForwardRows& split : context.splits)
            if (split.lse(row) > -infinity)
                lse_error_ = std::max(lse_error_, reference::lse_limit(split, row));
    }

    /// Error of scale_o · O before it is rounded. A weight has the error of its own LSE and of the normaliser.
    double stored(std::int64_t c) const {
        const double o = context_.expected.o(row_, c);
        double error = 0.0;
        for (const reference::ForwardRows& split : context_.splits) {
            if (!(split.lse(row_) > -infinity)) continue;
            const double weight = std::exp(split.lse(row_) - context_.expected.lse(row_)),
                         relative = std::expm1(reference::lse_limit(split, row_) + lse_error_);
            error += weight * ((1.0 + relative) * reference::RowBound(split, row_).limit(c) +
                               relative * (std::abs(split.o(row_, c)) + std::abs(o)));
        }
        return std::abs(context_.expected.scale_o) * error;
    }
    double limit(std::int64_t c) const {
        return (1.0 + context_.combined.numerics.u_o) * stored(c) + combined_.limit(c);
    }
    double error(std::int64_t c) const {
        return stored(c) + std::abs(context_.expected.scale_o) * combined_.error(c);
    }
    /// Predicted variance that combining adds to that of one pass (B.3, B.7).
    double combining_variance(std::int64_t c) const {
        const double rounded = reference::u32 * context_.combined.weighted_abs(combined_row_, c);
        return context_.expected.scale_o * context_.expected.scale_o *
               (context_.combined.weight_variance(combined_row_, c) + rounded * rounded);
    }
    double lse_limit() const {
        return lse_error_ + reference::combined_lse_limit(context_.combined, combined_row_);
    }

  private:
    const WholeJudgeContext& context_;
    std::int64_t row_;
    std::int64_t combined_row_;
    reference::CombineBound combined_;
    double lse_error_ = 0.0;
};

class WholeO final : public Bounded {
  public:
    WholeO(const WholeJudgeContext& context, ElementType o)
        : Bounded("o", o), context_(context),
          one_pass_(context.args, context.expected, o, context.fill, context.p_type, context.inputs) {}

    std::int64_t rows() const override { return context_.expected.o.rows(); }
    void read(std::int64_t row, BoundedRow& into) const override {
        const WholeRow bound(context_, row);
        if (context_.alone) {
            one_pass_.read(row, into);
        } else {
            into.id = context_.expected.rows[static_cast<std::size_t>(row)];
            into.resize(static_cast<std::size_t>(context_.expected.o.cols()));
        }
        for (std::size_t n = 0; n < into.value.size(); ++n) {
            const auto c = static_cast<std::int64_t>(n);
            into.value[n] = context_.expected.scale_o * context_.expected.o(row, c);
            into.limit[n] = std::max(into.limit[n], bound.limit(c));
            into.error[n] = std::max(into.error[n], bound.error(c));
            if (context_.alone) into.variance[n] += bound.combining_variance(c);
        }
    }
    // A stage that is judged by itself has these gates already.
    bool has_rms() const override { return context_.alone && one_pass_.has_rms(); }
    bool has_mean() const override { return one_pass_.has_mean(); }
    bool has_elements() const override { return context_.alone && one_pass_.has_elements(); }
    bool has_rows() const override { return context_.alone && one_pass_.has_rows(); }
    bool lines_may_round_once() const override { return one_pass_.lines_may_round_once(); }
    double lean() const override { return one_pass_.lean(); }

  private:
    const WholeJudgeContext& context_;
    BoundedO one_pass_;
};

class WholeLse final : public Bounded {
  public:
    explicit WholeLse(const WholeJudgeContext& context)
        : Bounded("lse", ElementType::fp32), context_(context) {}

    std::int64_t rows() const override { return context_.expected.lse.size(); }
    void read(std::int64_t row, BoundedRow& into) const override {
        into.id = context_.expected.rows[static_cast<std::size_t>(row)];
        into.resize(1);
        into.value.front() = context_.expected.lse(row);
        into.limit.front() = WholeRow(context_, row).lse_limit();
        if (context_.alone)
            into.limit.front() = std::max(into.limit.front(), reference::lse_limit(context_.expected, row));
    }

  private:
    const WholeJudgeContext& context_;
};

/// Of each output the map with the most wrong elements.
void keep_worse_map(std::vector<ErrorMap>& maps, ErrorMap map) {
    const auto known = std::ranges::find(maps, map.tensor, &ErrorMap::tensor);
    if (known == maps.end())
        maps.push_back(std::move(map));
    else if (map.all_wrong() > known->all_wrong())
        *known = std::move(map);
}

} // namespace

Outputs partial_outputs(const SplitKvArgs& args) {
    const std::int64_t splits = args.partials.num_splits;
    std::vector<reference::RowId> ids;
    std::vector<std::int64_t> stored;
    for (std::int64_t b = 0; b < args.shape.batch; ++b) {
        const bool group = args.shape.mode == Mode::group;
        const std::int64_t start = group ? args.lengths.seqstart_q[b] : 0;
        const std::int64_t count = group ? args.lengths.seqstart_q[b + 1] - start : args.shape.seqlen_q;
        for (std::int64_t head = 0; head < args.shape.nhead_q * splits; ++head)
            for (std::int64_t i = 0; i < count; ++i) {
                ids.push_back({b, head, i});
                stored.push_back(start + i);
            }
    }
    const auto rows = std::make_shared<const OutputRows>(Axis::query, std::move(ids));
    Outputs outputs;
    const auto copy = [&](const char* name, const TensorView& view, Axis axis, std::int64_t columns) {
        Outputs::Tensor& tensor = outputs.add(name, view.type, rows, axis);
        for (std::int64_t row = 0; row < rows->size(); ++row) {
            const auto& id = rows->id(row);
            tensor.append_row(columns, [&](std::int64_t c) {
                return load_code(view.data, view.type,
                                 view.offset(id.b, id.h, stored[static_cast<std::size_t>(row)], c));
            });
        }
    };
    copy("o_acc", args.partials.o_acc, Axis::v_channel, args.shape.hdim_v);
    copy("lse_acc", args.partials.lse_acc, Axis::none, 1);
    return outputs;
}

Judgement judge_partials(const PartialsJudgeContext& context) {
    Judgement all;
    WorstGates gates;
    const auto rows = std::make_shared<const OutputRows>(Axis::query, reference::all_rows(context.args));
    for (std::int64_t split = 0; split < context.args.partials.num_splits; ++split) {
        const reference::AttentionArgs args = reference::attention_of(context.args, split);
        const Outputs outputs = outputs_of_split(context.outputs, context.args, split, rows);
        Judgement judgement = judge({args, outputs, context.expected[static_cast<std::size_t>(split)],
                                     context.fill, context.edge, context.p_type, context.inputs});
        for (GateVerdict& gate : judgement.gates) gates.add(std::move(gate), split);
        for (Deviation deviation : judgement.worst) {
            deviation.tensor = stored_name(deviation.tensor);
            deviation.h = deviation.h * context.args.partials.num_splits + split;
            all.worst.push_back(std::move(deviation));
        }
        for (ErrorMap& map : judgement.maps) {
            map.tensor = stored_name(map.tensor);
            map.h = map.h * context.args.partials.num_splits + split;
            keep_worse_map(all.maps, std::move(map));
        }
        if (all.pattern.empty() && !judgement.pattern.empty())
            all.pattern = fmt::format("split {}: {}", split, judgement.pattern);
        all.elements += judgement.elements;
    }
    const bool asks = detail::has_edge_rows(context.fill, context.inputs);
    const std::int64_t seeing = asks && !gates.has("exact") ? seeing_rows(context.args, *rows) : 0;
    all.gates = gates.take();
    if (seeing > 0) all.gates.push_back(detail::undecided_edge_rows(stored_name("o"), seeing));
    keep_worst(all.worst);
    return all;
}

void judge_whole(const WholeJudgeContext& context, Judgement& judgement) {
    const JudgeContext as_forward{context.args, context.outputs, context.expected, context.fill,
                                  context.edge, context.p_type,  context.inputs};
    Findings findings({query_rows(as_forward)});
    Judgement whole;
    if (context.fill != Fill::huge) {
        judge_values(WholeO(context, context.outputs.at("o").type()), context.outputs, findings, whole);
        if (context.outputs.find("lse") != nullptr)
            judge_statistic(WholeLse(context), context.outputs, findings, whole);
        for (GateVerdict& gate : whole.gates) gate.gate += ".whole";
    }
    Judgement exact;
    detail::judge_exactly(as_forward, findings, exact);
    for (GateVerdict& gate : exact.gates)
        if (context.alone || gate.gate == "exact") whole.gates.push_back(std::move(gate));
    // A stage that is red has told where, and is the nearer cause.
    if (judgement.passed()) {
        judgement.pattern = findings.pattern();
        judgement.worst = findings.worst();
        judgement.maps = findings.maps();
    }
    if (context.alone) judgement.elements = whole.elements;
    std::ranges::move(whole.gates, std::back_inserter(judgement.gates));
}

} // namespace fmha::harness
