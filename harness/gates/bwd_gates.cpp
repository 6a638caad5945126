#include "harness/gates/bwd_gates.hpp"

#include "harness/gates/fwd_bounded.hpp"
#include "reference/attention_args.hpp"
#include "reference/numerics/formats.hpp"
#include "reference/visibility.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <limits>
#include <numeric>

namespace fmha::harness {
namespace {

using reference::Gradients;
using reference::GradientTable;
using reference::RowId;
using Stored = reference::GradientBound::Stored;

/// Fewer elements have an RMS that may be far from its expectation, because few roundings are behind them.
constexpr std::size_t elements_for_rms = 4096;

using IdOfLine = std::function<RowId(std::int64_t)>;
using ColumnsOfRow = std::function<std::int64_t(const RowId&)>;

/// What decides which roundings are independent.
struct Origin {
    Fill fill = Fill::normal;
    InputOrigin inputs = InputOrigin::fill;
};

/// One gradient of the reference as the gates take it.
class BoundedGradient final : public Bounded {
  public:
    BoundedGradient(std::string name, ElementType type, const Gradients& gradients,
                    const GradientTable& table, Stored stored, IdOfLine id, Origin origin,
                    ColumnsOfRow columns = {})
        : Bounded(std::move(name), type), gradients_(gradients), table_(table), stored_(stored),
          id_(std::move(id)), origin_(origin), columns_(std::move(columns)) {}

    std::int64_t rows() const override { return table_.lines; }
    void read(std::int64_t row, BoundedRow& into) const override {
        const reference::GradientBound bound(gradients_, table_, row, stored_);
        into.id = id_(row);
        into.resize(static_cast<std::size_t>(columns_ ? columns_(into.id) : table_.cols));
        for (std::size_t n = 0; n < into.value.size(); ++n) {
            const auto c = static_cast<std::int64_t>(n);
            into.value[n] = bound.expected(c);
            into.limit[n] = bound.limit(c);
            into.variance[n] = bound.variance(c);
        }
    }
    /// The model has the roundings of 16-bit P and dS; dBias has none of them.
    bool has_rms() const override {
        return !columns_ && gradients_.numerics.u_p > 0.0 && element_bits(type()) == 16 &&
               table_.value.size() >= elements_for_rms && rounds_independently(origin_.fill, type());
    }
    bool has_elements() const override { return has_rms() && origin_.inputs != InputOrigin::caller; }
    bool has_rows() const override { return has_elements() && channels_differ(origin_.fill); }
    bool lines_may_round_once() const override { return true; }

  private:
    const Gradients& gradients_;
    const GradientTable& table_;
    Stored stored_;
    IdOfLine id_;
    Origin origin_;
    ColumnsOfRow columns_;
};

std::vector<RowId> ids_of_keys(const BwdArgs& args) {
    std::vector<RowId> ids;
    for (const reference::KeyId& key : reference::all_keys(args)) ids.push_back({key.b, key.h, key.j});
    return ids;
}

std::vector<RowId> ids_of_heads(const BwdArgs& args) {
    std::vector<RowId> ids;
    for (std::int64_t h = 0; h < args.shape.nhead_q; ++h) ids.push_back({0, h, 0});
    return ids;
}

/// The judgement of one stage's outputs.
class BackwardJudge {
  public:
    BackwardJudge(const BwdArgs& args, const Outputs& outputs, const Gradients& expected, Origin origin)
        : args_(args), forward_(reference::attention_of(reference::forward_part(args))), outputs_(outputs),
          expected_(expected), origin_(origin), lookers_(lookers()),
          findings_({space(Axis::query), space(Axis::key), heads()}) {}

    Judgement run() {
        each_bounded([&](const Bounded& bounded) {
            if (bounded.tensor() != "d" && bounded.tensor() != "d_sink") {
                judge_values(bounded, outputs_, findings_, judgement_);
                return;
            }
            judgement_.elements += bounded.rows();
            judge_statistic(bounded, outputs_, findings_, judgement_);
        });
        zeros();
        if (outputs_.find("dbias") != nullptr && args_.dropout.p_drop == 0.0F &&
            args_.score.sink_logit == nullptr)
            row_sums();
        judge_finite(outputs_, judgement_);
        judgement_.worst = findings_.worst();
        judgement_.maps = findings_.maps();
        judgement_.pattern = findings_.pattern();
        return std::move(judgement_);
    }

    /// The limits of every output that is there.
    void each_bounded(const std::function<void(const Bounded&)>& visit) const {
        const IdOfLine row = [&](std::int64_t n) {
            return expected_.request.rows[static_cast<std::size_t>(n)];
        };
        const IdOfLine key = [&](std::int64_t n) {
            const reference::KeyId& id = expected_.request.keys[static_cast<std::size_t>(n)];
            return RowId{id.b, id.h, id.j};
        };
        const IdOfLine head = [](std::int64_t n) { return RowId{0, n, 0}; };
        const auto statistic = [&](const char* name, const GradientTable& table, const IdOfLine& id) {
            if (outputs_.find(name) != nullptr)
                visit(BoundedGradient(name, ElementType::fp32, expected_, table, Stored::fp32, id, origin_));
        };
        const auto values = [&](const char* name, const GradientTable& table, const IdOfLine& id,
                                ColumnsOfRow columns = {}) {
            if (const Outputs::Tensor* tensor = outputs_.find(name))
                visit(BoundedGradient(name, tensor->type(), expected_, table, Stored::tag, id, origin_,
                                      std::move(columns)));
        };
        statistic("d", expected_.d, row);
        statistic("d_sink", expected_.d_sink, head);
        values("dq", expected_.dq, row);
        values("dk", expected_.dk, key);
        values("dv", expected_.dv, key);
        values("dbias", expected_.dbias, row, [&](const RowId& id) { return seqlen_k(id.b); });
    }

  private:
    std::int64_t seqlen_k(std::int64_t b) const { return reference::entry_lengths(forward_, b).seqlen_k; }

    RowSpace space(Axis axis) const {
        const auto checked = static_cast<std::int64_t>(axis == Axis::query ? expected_.request.rows.size()
                                                                           : expected_.request.keys.size());
        const bool reduced = axis == Axis::key && args_.reduce_dk_dv;
        std::vector<std::int64_t> partners;
        if (axis == Axis::query)
            for (const RowId& id : expected_.request.rows) partners.push_back(keys_of(id));
        else
            for (const reference::KeyId& id : expected_.request.keys)
                partners.push_back(lookers_of(id.b, id.j));
        return {.axis = axis,
                .batch = args_.shape.batch,
                .heads = reduced ? args_.shape.nhead_k : args_.shape.nhead_q,
                .group_size = reduced ? 1 : args_.shape.nhead_q / args_.shape.nhead_k,
                .checked_rows = checked,
                .all_rows = checked,
                .median_partners = median(partners),
                .facts = [this, axis](const RowId& id) {
                    const auto lengths = reference::entry_lengths(forward_, id.b);
                    if (axis == Axis::query)
                        return RowSpace::Facts{.length = lengths.seqlen_q, .partners = keys_of(id)};
                    return RowSpace::Facts{.length = lengths.seqlen_k, .partners = lookers_of(id.b, id.i)};
                }};
    }
    /// d_sink has one number a head, which all entries and rows add up to.
    RowSpace heads() const {
        return {.axis = Axis::head,
                .batch = 1,
                .heads = args_.shape.nhead_q,
                .group_size = args_.shape.nhead_q / args_.shape.nhead_k,
                .checked_rows = args_.shape.nhead_q,
                .all_rows = args_.shape.nhead_q,
                .facts = [](const RowId&) { return RowSpace::Facts{.length = 1}; }};
    }
    std::int64_t keys_of(const RowId& id) const { return reference::key_ranges(forward_, id).count(); }

    /// How many queries of each entry see each of its keys, by the mask alone.
    std::vector<std::vector<std::int64_t>> lookers() const {
        std::vector<std::vector<std::int64_t>> all;
        for (std::int64_t b = 0; b < args_.shape.batch; ++b) {
            const auto lengths = reference::entry_lengths(forward_, b);
            auto& entry = all.emplace_back(static_cast<std::size_t>(lengths.seqlen_k) + 1);
            const auto add = [&entry](std::int64_t first, std::int64_t end) {
                ++entry[static_cast<std::size_t>(first)];
                --entry[static_cast<std::size_t>(end)];
            };
            for (std::int64_t i = 0; i < lengths.seqlen_q; ++i) {
                const reference::KeyRanges keys = reference::key_ranges(forward_, {b, 0, i});
                if (keys.sinks() > 0) add(keys.sink_begin, keys.sink_end);
                if (keys.first < keys.end) add(keys.first, keys.end);
            }
            std::partial_sum(entry.begin(), entry.end(), entry.begin());
        }
        return all;
    }
    std::int64_t lookers_of(std::int64_t b, std::int64_t j) const {
        return lookers_[static_cast<std::size_t>(b)][static_cast<std::size_t>(j)];
    }

    void zeros() {
        for (const char* const name : {"dq", "dbias"})
            if (const Outputs::Tensor* tensor = outputs_.find(name)) zero_rows(*tensor);
        if (outputs_.find("dk") == nullptr && outputs_.find("dv") == nullptr) return;
        for (const char* const name : {"dk", "dv"})
            if (const Outputs::Tensor* tensor = outputs_.find(name))
                require_zero(*tensor, "no query sees it", [&](const RowId& id) {
                    return lookers_of(id.b, id.i) > 0 ? Columns::all() : Columns{};
                });
    }
    void zero_rows(const Outputs::Tensor& tensor) {
        const bool by_pair = tensor.column_axis() == Axis::key;
        require_zero(tensor, by_pair ? "the mask hides it" : "the row sees no key", [&](const RowId& id) {
            const reference::KeyRanges keys = reference::key_ranges(forward_, id);
            if (by_pair) return Columns{keys.first, keys.end};
            return keys.count() == 0 ? Columns{} : Columns::all();
        });
    }
    /// Columns [first, end) of a row.
    struct Columns {
        std::int64_t first = 0, end = 0;

        static Columns all() { return {0, std::numeric_limits<std::int64_t>::max()}; }
        bool contain(std::int64_t c) const { return first <= c && c < end; }
    };
    /// `free(row)`: the columns of a row that need not be zero; reported where some column must be.
    template <class Free>
    void require_zero(const Outputs::Tensor& tensor, const char* why, Free free) {
        ExactGate gate("G5.2", tensor.name());
        bool any = false;
        for (std::int64_t row = 0; row < tensor.rows().size(); ++row) {
            const RowId& id = tensor.rows().id(row);
            const Columns may_differ = free(id);
            for (std::int64_t c = 0; c < tensor.columns(row); ++c) {
                if (may_differ.contain(c)) continue;
                any = true;
                const double got = tensor.value(row, c);
                if (got == 0.0) continue;
                gate.fail(fmt::format("{} {} {} is {:.9g}, not 0: {}", tensor.rows().place(id),
                                      one_of(tensor.column_axis()), c, got, why));
                findings_.wrong(tensor, id, c);
            }
        }
        if (any) judgement_.gates.push_back(gate.verdict());
    }

    /// |Σ_j dBias| against the rest that roundings of dBias and of the stored O leave of it (B.9).
    void row_sums() {
        const Outputs::Tensor& dbias = outputs_.at("dbias");
        GateVerdict gate{.gate = "G1.sum", .tensor = "dbias"};
        for (std::int64_t line = 0; line < expected_.dbias.lines; ++line) {
            const RowId& id = expected_.request.rows[static_cast<std::size_t>(line)];
            const std::int64_t row = dbias.rows().index(id);
            double sum = 0.0, error = 0.0, size = 0.0;
            for (std::int64_t j = 0; j < dbias.columns(row); ++j) {
                const double got = dbias.value(row, j);
                sum += got;
                size += std::abs(got);
                error += expected_.dbias.error[expected_.dbias.at(line, j)] + expected_.numerics.f_o;
            }
            const double allowed = error + expected_.numerics.u_o * size + rounding_of_o(id);
            const double ratio = sum == 0.0 ? 0.0 : std::abs(sum) / allowed;
            gate.ratio =
                std::isnan(ratio) ? std::numeric_limits<double>::infinity() : std::max(gate.ratio, ratio);
            if (gate.ratio <= 1.0 || !gate.passed) continue;
            gate.passed = false;
            gate.detail = fmt::format("dBias of {} adds up to {:.3g}, {:.3g} allowed", dbias.rows().place(id),
                                      sum, allowed);
        }
        judgement_.gates.push_back(gate);
    }
    /// u_o·Σ_c|dO·O| + Dv·f_o·max|dO|: Δ uses O as it is stored.
    double rounding_of_o(const RowId& id) const {
        const std::int64_t start = args_.shape.mode == Mode::group ? args_.lengths.seqstart_q[id.b] : 0;
        const auto stored = [&](const TensorView& view, std::int64_t c) {
            return reference::decode(
                view.type, load_code(view.data, view.type, view.offset(id.b, id.h, start + id.i, c)));
        };
        double products = 0.0, largest = 0.0;
        for (std::int64_t c = 0; c < args_.shape.hdim_v; ++c) {
            const double d_o = std::abs(stored(args_.d_o, c));
            products += d_o * std::abs(stored(args_.o, c));
            largest = std::max(largest, d_o);
        }
        return expected_.numerics.u_o * products +
               static_cast<double>(args_.shape.hdim_v) * expected_.numerics.f_o * largest;
    }

    const BwdArgs& args_;
    reference::AttentionArgs forward_;
    const Outputs& outputs_;
    const Gradients& expected_;
    Origin origin_;
    std::vector<std::vector<std::int64_t>> lookers_;
    Findings findings_;
    Judgement judgement_;
};

} // namespace

Outputs bwd_outputs(const BwdArgs& args, KernelFamily stage, bool direct) {
    const FwdArgs forward = reference::forward_part(args);
    const bool group = args.shape.mode == Mode::group;
    Outputs outputs;
    const auto copy = [&](const char* name, const TensorView& view,
                          const std::shared_ptr<const OutputRows>& rows, Axis axis, const auto& columns) {
        Outputs::Tensor& tensor = outputs.add(name, view.type, rows, axis);
        for (const RowId& id : rows->ids()) {
            const std::int32_t* starts =
                rows->axis() == Axis::key ? args.lengths.seqstart_k : args.lengths.seqstart_q;
            const std::int64_t stored = (group ? starts[id.b] : 0) + id.i;
            tensor.append_row(columns(id), [&](std::int64_t c) {
                return load_code(view.data, view.type, view.offset(id.b, id.h, stored, c));
            });
        }
    };
    const auto fixed = [](std::int64_t columns) { return [columns](const RowId&) { return columns; }; };
    const auto queries = [&] {
        return std::make_shared<const OutputRows>(Axis::query, reference::all_rows(args));
    };
    if (stage == KernelFamily::bwd_dot_do_o) {
        copy("d", args.d, queries(), Axis::none, fixed(1));
        if (args.d_sink == nullptr) return outputs;
        Outputs::Tensor& d_sink =
            outputs.add("d_sink", ElementType::fp32,
                        std::make_shared<const OutputRows>(Axis::head, ids_of_heads(args)), Axis::none);
        for (std::int64_t h = 0; h < args.shape.nhead_q; ++h)
            d_sink.append_row(1, [&](std::int64_t) { return load_code(args.d_sink, ElementType::fp32, h); });
        return outputs;
    }
    const bool last = stage == KernelFamily::bwd_convert_dq;
    if (last || direct) copy("dq", args.dq, queries(), Axis::qk_channel, fixed(args.shape.hdim_q));
    if (last) return outputs;
    const auto keys = std::make_shared<const OutputRows>(Axis::key, ids_of_keys(args));
    copy("dk", args.dk, keys, Axis::qk_channel, fixed(args.shape.hdim_q));
    copy("dv", args.dv, keys, Axis::v_channel, fixed(args.shape.hdim_v));
    if (args.dbias.present())
        copy("dbias", args.dbias, queries(), Axis::key,
             [&](const RowId& id) { return reference::entry_lengths(forward, id.b).seqlen_k; });
    return outputs;
}

Judgement judge_backward(const BwdArgs& args, const Outputs& outputs, const Gradients& expected, Fill fill,
                         InputOrigin inputs) {
    return BackwardJudge(args, outputs, expected, {fill, inputs}).run();
}

void each_bounded_gradient(const BwdArgs& args, const Outputs& outputs, const Gradients& expected, Fill fill,
                           const std::function<void(const Bounded&)>& visit) {
    BackwardJudge(args, outputs, expected, {fill, InputOrigin::fill}).each_bounded(visit);
}

} // namespace fmha::harness
