#include "harness/gates/gate_tools.hpp"
#include "reference/bounds.hpp"
#include "reference/numerics/formats.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace fmha::harness::detail {
namespace {

/// A gate without tolerance: it remembers the first thing that broke it.
class ExactGate {
  public:
    ExactGate(std::string gate, std::string tensor)
        : verdict_{.gate = std::move(gate), .tensor = std::move(tensor)} {}

    void fail(const std::string& sentence) {
        if (verdict_.passed) verdict_.detail = sentence;
        verdict_.passed = false;
        verdict_.ratio = infinity;
    }
    const GateVerdict& verdict() const { return verdict_; }

  private:
    GateVerdict verdict_;
};

bool is_power_of_two(double value) {
    int exponent = 0;
    return value != 0.0 && std::abs(std::frexp(value, &exponent)) == 0.5;
}

/// Units in the last place by which a row that is a copy of one V row may differ from it (B.6.3). Every
/// factor that is not a power of two is one more fp32 rounding before the last one: P's pre-scale, scale_o,
/// and V's descale, which shows in values that are not on V's own grid. A kernel that rounds its operands (u_m)
/// copies the rounded value: a relative error of u_m is at most u_m·2^24 units of fp32.
std::int64_t copied_row_ulps(const FwdJudgeContext& context, bool v_on_grid) {
    const auto& kernel = context.expected.numerics;
    if (context.outputs.o_type() == ElementType::fp32)
        return 2 + static_cast<std::int64_t>(std::ceil(kernel.u_m * 0x1p24));
    const bool exact_prescale =
        kernel.f_p == 0.0 || is_power_of_two(reference::rounding_floor(context.p_type) / kernel.f_p);
    return exact_prescale && v_on_grid && is_power_of_two(context.expected.scale_o) ? 0 : 1;
}

/// Number of representable values between two finite values of one type.
std::int64_t ulps_between(ElementType type, std::uint32_t got, double expected) {
    const auto position = [&](double value) {
        const auto code = static_cast<std::int64_t>(reference::encode(type, std::abs(value)));
        return std::signbit(value) ? -code : code;
    };
    const double value = reference::decode(type, got);
    if (!std::isfinite(value)) return std::numeric_limits<std::int64_t>::max();
    return std::abs(position(value) - position(expected));
}

/// O must be the V row of key j, rounded; returns what is wrong with the first column that is not.
std::string differs_from_v_row(const FwdJudgeContext& context, const reference::RowId& id, std::int64_t j) {
    const FwdArgs& args = context.args;
    const ElementType type = context.outputs.o_type();
    const std::int64_t hk = id.h / (args.shape.nhead_q / args.shape.nhead_k);
    const std::int64_t index = context.outputs.row_index(id);
    for (std::int64_t c = 0; c < args.shape.hdim_v; ++c) {
        const double v = reference::value_of(args, id.b, hk, j, c);
        const double exact = context.expected.scale_o * v;
        const bool on_grid = reference::round_to(args.v.type, v) == v;
        const double target = reference::round_to(type, exact);
        const std::uint32_t got = context.outputs.o_code(index, c);
        if (ulps_between(type, got, target) > copied_row_ulps(context, on_grid))
            return fmt::format("{} column {}: got {:.9g}, V of key {} gives {:.9g}", place(id), c,
                               reference::decode(type, got), j, target);
    }
    return {};
}

void judge_random_bytes(const FwdJudgeContext& context, Findings& findings, Judgement& judgement) {
    if (!context.outputs.has_randval()) return;
    ExactGate gate("G5.1", "randval");
    const auto& expected = context.expected;
    for (Eigen::Index row = 0; row < expected.lse.size(); ++row) {
        const auto& id = expected.rows[static_cast<std::size_t>(row)];
        const std::int64_t index = context.outputs.row_index(id);
        for (std::int64_t j = 0; j < expected.seqlen_k(row); ++j) {
            if (!reference::key_visible(context.args, id.b, id.i, j)) continue;
            const auto wanted = reference::stored_random_byte(context.args, id, j);
            const auto got = context.outputs.random_byte(index, j);
            if (got == wanted) continue;
            gate.fail(fmt::format("{} key {}: got byte {}, expected {}", place(id), j, got, wanted));
            findings.wrong(row, -1);
            break;
        }
    }
    judgement.gates.push_back(gate.verdict());
}

void judge_special_rows(const FwdJudgeContext& context, Findings& findings, Judgement& judgement) {
    ExactGate empty("G5.2", "o"), single("G5.3", "o");
    bool any_empty = false, any_single = false;
    const auto& expected = context.expected;
    const bool dropout = context.args.dropout.p_drop > 0.0F;
    for (Eigen::Index row = 0; row < expected.lse.size(); ++row) {
        const auto& id = expected.rows[static_cast<std::size_t>(row)];
        const std::int64_t index = context.outputs.row_index(id);
        if (expected.visible_keys(row) == 0) {
            any_empty = true;
            for (std::int64_t c = 0; c < context.args.shape.hdim_v; ++c)
                if (context.outputs.o_code(index, c) != 0) {
                    empty.fail(fmt::format(
                        "{} sees no key but column {} is {:.9g}, not +0", place(id), c,
                        reference::decode(context.outputs.o_type(), context.outputs.o_code(index, c))));
                    findings.wrong(row, c);
                    break;
                }
            if (!context.outputs.has_lse()) continue;
            const auto lse = static_cast<double>(context.outputs.lse(index));
            const double wanted = expected.lse(row);
            const bool right = std::isinf(wanted)
                                   ? lse == wanted
                                   : std::abs(lse - wanted) <= reference::lse_limit(expected, row);
            if (!right) {
                empty.fail(fmt::format("{} sees no key but its LSE is {}, not {}", place(id), lse, wanted));
                findings.wrong(row, -1);
            }
        } else if (expected.visible_keys(row) == 1 && !dropout &&
                   expected.row_max(row) == expected.score_max(row) &&
                   (context.args.score.sink_logit == nullptr ||
                    std::isinf(context.args.score.sink_logit[id.h])) &&
                   context.args.score.bias_type != BiasType::elementwise) {
            any_single = true;
            const auto wrong = differs_from_v_row(context, id, expected.first_visible(row));
            if (wrong.empty()) continue;
            single.fail(wrong);
            findings.wrong(row, -1);
        }
    }
    if (any_empty) judgement.gates.push_back(empty.verdict());
    if (any_single) judgement.gates.push_back(single.verdict());
}

void judge_finite(const FwdJudgeContext& context, Judgement& judgement) {
    ExactGate gate("G5.9", "o");
    const auto& outputs = context.outputs;
    for (std::int64_t row = 0; row < outputs.rows(); ++row) {
        const auto& id = outputs.row_ids()[static_cast<std::size_t>(row)];
        for (std::int64_t c = 0; c < context.args.shape.hdim_v; ++c)
            if (!std::isfinite(reference::decode(outputs.o_type(), outputs.o_code(row, c)))) {
                gate.fail(fmt::format("{} column {} is {}", place(id), c,
                                      reference::decode(outputs.o_type(), outputs.o_code(row, c))));
                break;
            }
        if (outputs.has_lse() && (std::isnan(outputs.lse(row)) || outputs.lse(row) == infinity))
            gate.fail(fmt::format("LSE of {} is {}", place(id), outputs.lse(row)));
    }
    judgement.gates.push_back(gate.verdict());
}

/// Whether the winning key of an edge fill decides the row alone (design of the fill: no other term of the
/// normaliser, and logits that only the fill makes).
bool edge_applies(const FwdJudgeContext& context) {
    const FwdArgs& args = context.args;
    return context.edge && args.score.logits_soft_cap == 0.0F && args.dropout.p_drop == 0.0F &&
           args.score.bias_type != BiasType::elementwise && args.score.sink_logit == nullptr;
}

void judge_edge_rows(const FwdJudgeContext& context, Findings& findings, Judgement& judgement) {
    if (!edge_applies(context)) return;
    ExactGate gate("exact", "o");
    const bool last_wins = context.fill == Fill::edge_last;
    const auto& expected = context.expected;
    std::int64_t decided = 0;
    for (Eigen::Index row = 0; row < expected.lse.size(); ++row) {
        if (expected.visible_keys(row) == 0) continue;
        const std::int64_t winner = last_wins ? expected.last_visible(row) : expected.first_visible(row);
        if (!context.edge->decides(winner, expected.seqlen_k(row), last_wins)) continue;
        ++decided;
        const auto wrong = differs_from_v_row(context, expected.rows[static_cast<std::size_t>(row)], winner);
        if (wrong.empty()) continue;
        gate.fail(wrong);
        findings.wrong(row, -1);
    }
    if (decided > 0) judgement.gates.push_back(gate.verdict());
}

} // namespace

void judge_exactly(const FwdJudgeContext& context, Findings& findings, Judgement& judgement) {
    judge_random_bytes(context, findings, judgement);
    judge_special_rows(context, findings, judgement);
    judge_edge_rows(context, findings, judgement);
    judge_finite(context, judgement);
}

} // namespace fmha::harness::detail
