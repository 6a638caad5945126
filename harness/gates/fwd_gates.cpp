#include "harness/gates/fwd_gates.hpp"

#include "harness/gates/gate_tools.hpp"
#include "reference/bounds.hpp"
#include "reference/numerics/formats.hpp"
#include "reference/visibility.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>

namespace fmha::harness {
namespace detail {
namespace {

constexpr std::size_t most_worst = 10;
constexpr std::size_t most_wrong =
    200'000; ///< enough for every pattern; bounds the memory of a wholly wrong result

/// Sums of one (b, h), or of everything.
struct ErrorSums {
    double square = 0.0, predicted = 0.0;
    std::int64_t elements = 0;

    void add(double error, double variance) {
        square += error * error;
        predicted += variance;
        ++elements;
    }
    double ratio() const {
        if (square == 0.0) return 0.0;
        const double value = std::sqrt(square / predicted);
        return std::isnan(value) ? infinity : value;
    }
};

/// The RMS model takes rounding errors as independent. With zeros for Q and K all rows are one row, with integers
/// P takes the same few values in every row, and with nearly flat scores an 8-bit O takes very few values.
bool rms_applies(Fill fill, ElementType o) {
    return fill != Fill::zeros && fill != Fill::integers && !(fill == Fill::indexed && element_bits(o) <= 8);
}

/// The model's score error grows with |s| and not with the distance to the row's maximum, which a sink logit above every
/// score makes large. Beside the rounding of a 16-bit P or O that does not count; with fp32 it is all there is.
bool rms_row_applies(const reference::ForwardRows& rows, Eigen::Index row, ElementType o) {
    return o != ElementType::fp32 || !(rows.row_max(row) > rows.score_max(row));
}

/// Sign statistics need data without structure, and a P whose small values do not all become zero: e2m1 has three binades.
bool mean_applies(Fill fill, ElementType p) {
    if (p == ElementType::fp4) return false;
    return fill == Fill::normal || fill == Fill::sharp || fill == Fill::uniform || fill == Fill::rising;
}

double rms_factor(ElementType o) {
    return o == ElementType::fp32 ? 8.0 : 1.25;
}

/// One (b, h) may have too few elements for their RMS to be near its expectation; all of them together never do.
double head_rms_factor(ElementType o, std::int64_t elements) {
    return elements < 4096 ? 2.0 * rms_factor(o) : rms_factor(o);
}

/// An overflow to infinity is right when the exact value is within the limit of the overflow threshold (T-5).
bool overflow_expected(double got, double expected, double limit, ElementType type) {
    return std::isinf(got) && std::abs(expected) + limit >= reference::largest_finite(type) &&
           std::signbit(got) == std::signbit(expected);
}

} // namespace

std::string place(const reference::RowId& row) {
    return fmt::format("b{} h{} row {}", row.b, row.h, row.i);
}

Findings::Findings(const FwdJudgeContext& context)
    : context_(context), expected_row_(static_cast<std::size_t>(context.outputs.rows()), -1) {
    Eigen::Index row = 0;
    for (const auto& id : context.expected.rows)
        expected_row_[static_cast<std::size_t>(context.outputs.row_index(id))] = row++;
}

void Findings::element(Eigen::Index row, std::int64_t column, double got, double expected, double limit,
                       double ratio, const char* tensor) {
    const auto& id = context_.expected.rows[static_cast<std::size_t>(row)];
    if (!(ratio <= 1.0)) wrong(id, column);
    if (ranked_.size() == most_worst && ratio <= ranked_.back().ratio) return;
    const Ranked entry{ratio, {tensor, id.b, id.h, id.i, column, got, expected, limit}};
    const auto at = std::upper_bound(ranked_.begin(), ranked_.end(), ratio,
                                     [](double value, const Ranked& other) { return value > other.ratio; });
    ranked_.insert(at, entry);
    if (ranked_.size() > most_worst) ranked_.pop_back();
}

void Findings::wrong(const reference::RowId& id, std::int64_t column) {
    const Eigen::Index row = expected_row_[static_cast<std::size_t>(context_.outputs.row_index(id))];
    auto& list = row >= 0 ? wrong_ : wrong_elsewhere_;
    if (list.size() >= most_wrong) return;
    std::int64_t keys = 0;
    if (row >= 0)
        keys = context_.expected.visible_keys(row);
    else if (!reference::end_keys(context_.args, id).none())
        keys = reference::key_ranges(context_.args, id).count();
    list.push_back({id.b, id.h, id.i, column, reference::entry_lengths(context_.args, id.b).seqlen_q, keys});
}

std::vector<Deviation> Findings::worst() const {
    std::vector<Deviation> worst;
    for (const Ranked& entry : ranked_) worst.push_back(entry.deviation);
    return worst;
}

std::string Findings::pattern() const {
    if (!wrong_.empty()) return pattern_of(wrong_, static_cast<std::int64_t>(context_.expected.rows.size()));
    return pattern_of(wrong_elsewhere_, context_.outputs.rows());
}

std::string Findings::pattern_of(const std::vector<WrongElement>& wrong, std::int64_t checked_rows) const {
    if (wrong.empty()) return {};
    const auto& keys = context_.expected.visible_keys;
    std::vector<std::int64_t> sorted(keys.data(), keys.data() + keys.size());
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    return classify(wrong, {context_.args.shape.batch, context_.args.shape.nhead_q,
                            context_.args.shape.nhead_q / context_.args.shape.nhead_k,
                            context_.args.shape.hdim_v, checked_rows, sorted.empty() ? 0 : *middle});
}

void judge_o(const FwdJudgeContext& context, Findings& findings, Judgement& judgement) {
    const ElementType type = context.outputs.o_type();
    const bool narrow = element_bits(type) <= 8;
    const double largest = reference::largest_finite(type);
    const auto& expected = context.expected;

    GateVerdict g1{.gate = "G1", .tensor = "o"};
    ErrorSums all;
    std::map<std::pair<std::int64_t, std::int64_t>, ErrorSums> heads;
    double signed_sum = 0.0;
    ErrorSums signed_rows;
    std::int64_t rows_for_mean = 0;

    for (Eigen::Index row = 0; row < expected.o.rows(); ++row) {
        const auto& id = expected.rows[static_cast<std::size_t>(row)];
        const std::int64_t index = context.outputs.row_index(id);
        const reference::RowBound bound(expected, row);
        ErrorSums& head = heads[{id.b, id.h}];
        const bool in_rms = rms_row_applies(expected, row, type);
        const bool in_mean = in_rms && expected.seqlen_k(row) >= 64;
        rows_for_mean += in_mean ? 1 : 0;
        for (Eigen::Index c = 0; c < expected.o.cols(); ++c) {
            const double got = reference::decode(type, context.outputs.o_code(index, c));
            const double exact = bound.expected(c);
            const double target = narrow ? std::clamp(exact, -largest, largest) : exact;
            const double limit = bound.limit(c);
            double ratio = 0.0;
            if (got != target) ratio = std::abs(got - target) / limit;
            if (std::isnan(ratio)) ratio = infinity;
            if (overflow_expected(got, exact, limit, type)) ratio = 0.0;
            if (narrow && ratio <= 1.0 &&
                !reference::code_reachable(type, got, exact, std::abs(expected.scale_o) * bound.error(c)))
                ratio = infinity;
            findings.element(row, c, got, target, limit, ratio, "o");
            if (ratio > g1.ratio) g1.ratio = ratio;
            if (ratio > 1.0 && g1.passed) {
                g1.passed = false;
                g1.detail = fmt::format("first at {} column {}: got {:.9g}, expected {:.9g} ± {:.3g}",
                                        place(id), c, got, target, limit);
            }
            if ((std::isinf(got) && ratio == 0.0) || !in_rms) continue;
            const double variance = bound.variance(c);
            all.add(got - target, variance);
            head.add(got - target, variance);
            if (!in_mean) continue;
            signed_sum += target > 0.0 ? got - target : target < 0.0 ? target - got : 0.0;
            signed_rows.add(got - target, variance);
        }
    }
    judgement.elements = expected.o.size();
    judgement.gates.push_back(g1);

    if (!rms_applies(context.fill, type) || all.elements == 0) return;
    GateVerdict g2{.gate = "G2", .tensor = "o", .ratio = all.ratio() / rms_factor(type)};
    if (!(g2.ratio <= 1.0))
        g2.detail = fmt::format("RMS error is {:.3g} of the predicted, {:.3g} allowed", all.ratio(),
                                rms_factor(type));
    for (const auto& [head, sums] : heads) {
        const double factor = head_rms_factor(type, sums.elements);
        const double ratio = sums.ratio() / factor;
        if (ratio <= g2.ratio) continue;
        g2.ratio = ratio;
        if (ratio > 1.0)
            g2.detail = fmt::format("RMS error of b{} h{} is {:.3g} of the predicted, {:.3g} allowed",
                                    head.first, head.second, sums.ratio(), factor);
    }
    g2.passed = g2.ratio <= 1.0;
    judgement.gates.push_back(g2);

    if (!mean_applies(context.fill, context.p_type) || rows_for_mean < 64 || signed_rows.elements == 0)
        return;
    const double predicted = std::sqrt(signed_rows.predicted / static_cast<double>(signed_rows.elements));
    const double mean = signed_sum / static_cast<double>(signed_rows.elements);
    const double allowed = 6.0 * predicted / std::sqrt(static_cast<double>(rows_for_mean)) + 0.05 * predicted;
    GateVerdict biased{
        .gate = "G2.mean", .tensor = "o", .ratio = mean == 0.0 ? 0.0 : std::abs(mean) / allowed};
    biased.passed = biased.ratio <= 1.0;
    if (!biased.passed)
        biased.detail =
            fmt::format("errors lean {} zero: mean {:.3g}, allowed {:.3g} (truncation instead of rounding?)",
                        mean > 0.0 ? "away from" : "towards", mean, allowed);
    judgement.gates.push_back(biased);
}

void judge_lse(const FwdJudgeContext& context, Findings& findings, Judgement& judgement) {
    if (!context.outputs.has_lse()) return;
    GateVerdict g3{.gate = "G3", .tensor = "lse"};
    const auto& expected = context.expected;
    for (Eigen::Index row = 0; row < expected.lse.size(); ++row) {
        const auto& id = expected.rows[static_cast<std::size_t>(row)];
        const auto got = static_cast<double>(context.outputs.lse(context.outputs.row_index(id)));
        const double target = expected.lse(row);
        const double limit = reference::lse_limit(expected, row);
        double ratio = 0.0;
        if (got != target)
            ratio = std::isinf(got) || std::isinf(target) ? infinity : std::abs(got - target) / limit;
        if (std::isnan(ratio)) ratio = infinity;
        findings.element(row, -1, got, target, limit, ratio, "lse");
        g3.ratio = std::max(g3.ratio, ratio);
        if (ratio > 1.0 && g3.passed) {
            g3.passed = false;
            g3.detail = fmt::format("first at {}: got {:.9g}, expected {:.9g} ± {:.3g}", place(id), got,
                                    target, limit);
        }
    }
    judgement.gates.push_back(g3);
}

} // namespace detail

bool Judgement::passed() const {
    return std::none_of(gates.begin(), gates.end(), [](const GateVerdict& gate) { return gate.failed(); });
}

Judgement judge(const FwdJudgeContext& context) {
    Judgement judgement;
    detail::Findings findings(context);
    if (context.fill != Fill::huge) {
        detail::judge_o(context, findings, judgement);
        detail::judge_lse(context, findings, judgement);
    }
    detail::judge_exactly(context, findings, judgement);
    judgement.worst = findings.worst();
    judgement.pattern = findings.pattern();
    return judgement;
}

GateVerdict low_precision_yardstick(const FwdJudgeContext& context, const ElementTypes& types,
                                    std::int64_t rows) {
    GateVerdict g4{.gate = "G4", .tensor = "o", .required = false};
    const auto& expected = context.expected;
    const auto count = static_cast<std::int64_t>(expected.rows.size());
    std::vector<reference::RowId> sample;
    std::vector<Eigen::Index> source;
    for (std::int64_t n = 0; n < std::min(rows, count); ++n) {
        const std::int64_t at = n * count / std::min(rows, count);
        sample.push_back(expected.rows[static_cast<std::size_t>(at)]);
        source.push_back(at);
    }
    const auto plain = reference::forward_low_precision(context.args, sample, types, 1);
    double error = 0.0, plain_error = 0.0, granularity = 0.0;
    for (std::size_t n = 0; n < sample.size(); ++n)
        for (Eigen::Index c = 0; c < expected.o.cols(); ++c) {
            const double exact = expected.scale_o * expected.o(source[n], c);
            const double got =
                reference::decode(types.o, context.outputs.o_code(context.outputs.row_index(sample[n]), c));
            error = std::max(error, std::abs(got - exact));
            plain_error = std::max(plain_error, std::abs(plain(static_cast<Eigen::Index>(n), c) - exact));
            granularity =
                std::max(granularity, std::abs(reference::round_to(types.o, exact + 0.3) - 0.3 - exact));
        }
    g4.ratio = error == 0.0 ? 0.0 : error / (2.0 * plain_error + 2.0 * granularity);
    g4.passed = g4.ratio <= 1.0;
    return g4;
}

} // namespace fmha::harness
