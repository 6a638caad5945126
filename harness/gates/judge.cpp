#include "harness/gates/judge.hpp"

#include "harness/data/infinity.hpp"
#include "reference/bounds.hpp"
#include "reference/numerics/formats.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>

namespace fmha::harness {
namespace {

/// Sums of one (b, h), or of everything.
struct ErrorSums {
    double square = 0.0, predicted = 0.0;
    std::int64_t elements = 0;

    void add(double error, double variance) {
        square += error * error;
        predicted += variance;
        line_ += variance;
        ++elements;
    }
    void end_line() {
        line_squares_ += line_ * line_;
        line_ = 0.0;
    }
    /// As many lines of equal variance would leave their mean as uncertain as these are.
    double equal_lines() const {
        return line_squares_ > 0.0 ? predicted * predicted / line_squares_ : infinity;
    }
    double ratio() const {
        if (square == 0.0) return 0.0;
        const double value = std::sqrt(square / predicted);
        return std::isnan(value) ? infinity : value;
    }

  private:
    double line_ = 0.0, line_squares_ = 0.0;
};

double rms_factor(ElementType type) {
    return type == ElementType::fp32 ? 8.0 : 1.25;
}

/// One (b, h) may have too few elements for their RMS to be near its expectation; all of them together never do.
constexpr std::int64_t elements_of_head = 4096;
/// Lines of one rounding each, (6/(1.25² − 1))²·0.8 of them, have an RMS within 1.25 at six standard deviations (B.9).
constexpr double lines_of_one_rounding = 91.0;

/// G2.element, in standard deviations; correct kernels have reached 4.0 in 2·10⁹ elements (B.3).
constexpr double element_deviations = 6.0;
/// G2.row; correct kernels have reached 1.8 in 2·10⁷ rows (B.3).
constexpr double row_factor = 2.5;
/// A row of fewer columns may have an RMS that is far from its expectation.
constexpr std::int64_t columns_of_row = 32;

/// The largest ratio of some places, and how many are above 1.
class WorstPlace {
  public:
    /// `where()` is asked for the worst one alone.
    template <class Where>
    void add(double ratio, const Where& where) {
        if (std::isnan(ratio)) ratio = infinity;
        ++places_;
        above_ += ratio > 1.0 ? 1 : 0;
        if (ratio <= ratio_) return;
        ratio_ = ratio;
        where_ = where();
    }
    bool any() const { return places_ > 0; }
    double ratio() const { return ratio_; }
    /// "b0 h1 row 5 (the worst of 3 among 130 rows)".
    std::string text(const char* what) const {
        return above_ > 1 ? fmt::format("{} (the worst of {} among {} {})", where_, above_, places_, what)
                          : fmt::format("{} (alone among {} {})", where_, places_, what);
    }

  private:
    double ratio_ = 0.0;
    std::int64_t places_ = 0, above_ = 0;
    std::string where_;
};

/// An overflow to infinity is right when the exact value is within the limit of the overflow threshold (T-5).
bool overflow_expected(double got, double expected, double limit, ElementType type) {
    return std::isinf(got) && std::abs(expected) + limit >= reference::largest_finite(type) &&
           std::signbit(got) == std::signbit(expected);
}

/// The judgement of one output by G1 and the gates of G2, row after row.
class ValueJudge {
  public:
    ValueJudge(const Bounded& bounded, const Outputs::Tensor& tensor, Findings& findings)
        : bounded_(bounded), tensor_(tensor), findings_(findings), type_(tensor.type()),
          narrow_(element_bits(type_) <= 8), largest_(reference::largest_finite(type_)),
          has_elements_(bounded.has_elements()),
          has_rows_(bounded.has_rows()), g1_{.gate = "G1", .tensor = tensor.name()} {}

    void row(const BoundedRow& expected) {
        const std::int64_t index = tensor_.rows().index(expected.id);
        ErrorSums& head = heads_[{expected.id.b, expected.id.h}];
        const bool in_mean = expected.in_rms && expected.in_mean;
        rows_for_mean_ += in_mean ? 1 : 0;
        ErrorSums line;
        bool found = false;
        for (std::size_t n = 0; n < expected.value.size(); ++n) {
            const auto c = static_cast<std::int64_t>(n);
            const double exact = expected.value[n], got = tensor_.value(index, c);
            const double target = narrow_ ? std::clamp(exact, -largest_, largest_) : exact;
            const double ratio = element(expected, n, got, target);
            findings_.element(tensor_, expected.id, c, got, target, expected.limit[n], ratio);
            found = found || !(ratio <= 1.0);
            if (ratio > g1_.ratio) g1_.ratio = ratio;
            if (ratio > 1.0 && g1_.passed) {
                g1_.passed = false;
                g1_.detail = fmt::format("first at {} {} {}: got {:.9g}, expected {:.9g} ± {:.3g}",
                                         tensor_.rows().place(expected.id), one_of(tensor_.column_axis()), c,
                                         got, target, expected.limit[n]);
            }
            if ((std::isinf(got) && ratio == 0.0) || !expected.in_rms) continue;
            all_.add(got - target, expected.variance[n]);
            head.add(got - target, expected.variance[n]);
            line.add(got - target, expected.variance[n]);
            if (has_elements_ && !element_alone(expected.id, c, got - target, expected.variance[n])) {
                if (ratio <= 1.0) findings_.wrong(tensor_, expected.id, c);
                found = true;
            }
            if (!in_mean) continue;
            signed_sum_ += target > 0.0 ? got - target : target < 0.0 ? target - got : 0.0;
            absolute_sum_ += std::abs(target);
            signed_rows_.add(got - target, expected.variance[n]);
        }
        all_.end_line();
        head.end_line();
        if (has_rows_ && line.elements >= columns_of_row && !row_alone(expected.id, line) && !found)
            findings_.wrong(tensor_, expected.id, -1);
        elements_ += static_cast<std::int64_t>(expected.value.size());
    }

    void conclude(Judgement& judgement) const {
        judgement.elements += elements_;
        judgement.gates.push_back(g1_);
        if (!bounded_.has_rms() || all_.elements == 0) return;
        judgement.gates.push_back(rms());
        if (row_.any()) judgement.gates.push_back(rms_of_row());
        if (element_.any()) judgement.gates.push_back(single_element());
        if (!bounded_.has_mean() || rows_for_mean_ < 64 || signed_rows_.elements == 0) return;
        judgement.gates.push_back(mean());
    }

  private:
    double element(const BoundedRow& expected, std::size_t n, double got, double target) const {
        const double exact = expected.value[n], limit = expected.limit[n];
        double ratio = 0.0;
        if (got != target) ratio = std::abs(got - target) / limit;
        if (std::isnan(ratio)) ratio = infinity;
        if (overflow_expected(got, exact, limit, type_)) ratio = 0.0;
        if (narrow_ && ratio <= 1.0 && !reference::code_reachable(type_, got, exact, expected.error[n]))
            ratio = infinity;
        return ratio;
    }

    /// Whether the error of one element is what its roundings explain.
    bool element_alone(const reference::RowId& id, std::int64_t c, double error, double variance) {
        const double ratio =
            error == 0.0 ? 0.0 : std::abs(error) / (element_deviations * std::sqrt(variance));
        element_.add(ratio, [&] {
            return fmt::format("{} {} {}", tensor_.rows().place(id), one_of(tensor_.column_axis()), c);
        });
        return ratio <= 1.0;
    }
    bool row_alone(const reference::RowId& id, const ErrorSums& sums) {
        const double ratio = sums.ratio() / row_factor;
        row_.add(ratio, [&] { return tensor_.rows().place(id); });
        return ratio <= 1.0;
    }

    GateVerdict rms_of_row() const {
        GateVerdict gate{
            .gate = "G2.row", .tensor = tensor_.name(), .passed = row_.ratio() <= 1.0, .ratio = row_.ratio()};
        if (!gate.passed)
            gate.detail = fmt::format("RMS error of {} is {:.3g} of the predicted, {:.3g} allowed",
                                      row_.text("rows"), row_.ratio() * row_factor, row_factor);
        return gate;
    }
    GateVerdict single_element() const {
        GateVerdict gate{.gate = "G2.element",
                         .tensor = tensor_.name(),
                         .passed = element_.ratio() <= 1.0,
                         .ratio = element_.ratio()};
        if (!gate.passed)
            gate.detail =
                fmt::format("{} is {:.3g} standard deviations off, {:.3g} allowed", element_.text("elements"),
                            element_.ratio() * element_deviations, element_deviations);
        return gate;
    }

    /// ρ of B.3, doubled where the sums are of too few roundings. √3 is the most that one rounding can reach.
    double factor(const ErrorSums& sums, std::int64_t enough_elements, bool lines_may_round_once) const {
        const bool few = sums.elements < enough_elements ||
                         (lines_may_round_once && sums.equal_lines() < lines_of_one_rounding);
        return few ? 2.0 * rms_factor(type_) : rms_factor(type_);
    }

    GateVerdict rms() const {
        const bool lines_may_round_once = bounded_.lines_may_round_once();
        const double whole = factor(all_, 0, lines_may_round_once);
        GateVerdict g2{.gate = "G2", .tensor = tensor_.name(), .ratio = all_.ratio() / whole};
        if (!(g2.ratio <= 1.0))
            g2.detail =
                fmt::format("RMS error is {:.3g} of the predicted, {:.3g} allowed", all_.ratio(), whole);
        for (const auto& [head, sums] : heads_) {
            const double factor = this->factor(sums, elements_of_head, lines_may_round_once);
            const double ratio = sums.ratio() / factor;
            if (ratio <= g2.ratio) continue;
            g2.ratio = ratio;
            if (ratio > 1.0)
                g2.detail = fmt::format("RMS error of b{} h{} is {:.3g} of the predicted, {:.3g} allowed",
                                        head.first, head.second, sums.ratio(), factor);
        }
        g2.passed = g2.ratio <= 1.0;
        return g2;
    }

    GateVerdict mean() const {
        const double predicted =
            std::sqrt(signed_rows_.predicted / static_cast<double>(signed_rows_.elements));
        const auto elements = static_cast<double>(signed_rows_.elements);
        const double mean = signed_sum_ / elements;
        const double allowed = 6.0 * predicted / std::sqrt(static_cast<double>(rows_for_mean_)) +
                               0.05 * predicted + bounded_.lean() * absolute_sum_ / elements;
        GateVerdict biased{.gate = "G2.mean",
                           .tensor = tensor_.name(),
                           .ratio = mean == 0.0 ? 0.0 : std::abs(mean) / allowed};
        biased.passed = biased.ratio <= 1.0;
        if (!biased.passed)
            biased.detail = fmt::format(
                "errors lean {} zero: mean {:.3g}, allowed {:.3g} (truncation instead of rounding?)",
                mean > 0.0 ? "away from" : "towards", mean, allowed);
        return biased;
    }

    const Bounded& bounded_;
    const Outputs::Tensor& tensor_;
    Findings& findings_;
    ElementType type_;
    bool narrow_;
    double largest_;
    bool has_elements_, has_rows_;
    GateVerdict g1_;
    WorstPlace row_, element_;
    ErrorSums all_, signed_rows_;
    std::map<std::pair<std::int64_t, std::int64_t>, ErrorSums> heads_;
    double signed_sum_ = 0.0, absolute_sum_ = 0.0;
    std::int64_t rows_for_mean_ = 0, elements_ = 0;
};

} // namespace

bool Judgement::passed() const {
    return std::none_of(gates.begin(), gates.end(), [](const GateVerdict& gate) { return gate.failed(); });
}

void ExactGate::fail(const std::string& sentence) {
    if (verdict_.passed) verdict_.detail = sentence;
    verdict_.passed = false;
    verdict_.ratio = infinity;
}

void judge_values(const Bounded& bounded, const Outputs& outputs, Findings& findings, Judgement& judgement) {
    ValueJudge judge(bounded, outputs.at(bounded.tensor()), findings);
    BoundedRow expected;
    for (std::int64_t row = 0; row < bounded.rows(); ++row) {
        bounded.read(row, expected);
        judge.row(expected);
    }
    judge.conclude(judgement);
}

void judge_statistic(const Bounded& bounded, const Outputs& outputs, Findings& findings,
                     Judgement& judgement) {
    const Outputs::Tensor& tensor = outputs.at(bounded.tensor());
    GateVerdict g3{.gate = "G3", .tensor = tensor.name()};
    BoundedRow expected;
    for (std::int64_t row = 0; row < bounded.rows(); ++row) {
        bounded.read(row, expected);
        const double got = tensor.value(tensor.rows().index(expected.id), 0);
        const double target = expected.value.front(), limit = expected.limit.front();
        double ratio = 0.0;
        if (got != target)
            ratio = std::isinf(got) || std::isinf(target) ? infinity : std::abs(got - target) / limit;
        if (std::isnan(ratio)) ratio = infinity;
        findings.element(tensor, expected.id, -1, got, target, limit, ratio);
        g3.ratio = std::max(g3.ratio, ratio);
        if (ratio > 1.0 && g3.passed) {
            g3.passed = false;
            g3.detail = fmt::format("first at {}: got {:.9g}, expected {:.9g}",
                                    tensor.rows().place(expected.id), got, target);
            if (!std::isinf(target)) g3.detail += fmt::format(" ± {:.3g}", limit);
        }
    }
    judgement.gates.push_back(g3);
}

void judge_finite(const Outputs& outputs, Judgement& judgement) {
    if (outputs.tensors().empty()) return;
    ExactGate gate("G5.9", outputs.tensors().front().name());
    for (const Outputs::Tensor& tensor : outputs.tensors()) {
        if (tensor.type() == ElementType::uint8) continue;
        const bool statistic = tensor.column_axis() == Axis::none;
        for (std::int64_t row = 0; row < tensor.rows().size() && gate.verdict().passed; ++row)
            for (std::int64_t c = 0; c < tensor.columns(row); ++c) {
                const double value = tensor.value(row, c);
                if (std::isfinite(value) || (statistic && value == -infinity)) continue;
                const std::string place = tensor.rows().place(tensor.rows().id(row));
                gate.fail(statistic
                              ? fmt::format("{} of {} is {}", tensor.name(), place, value)
                              : fmt::format("{} {} {} is {}", place, one_of(tensor.column_axis()), c, value));
                break;
            }
    }
    judgement.gates.push_back(gate.verdict());
}

} // namespace fmha::harness
