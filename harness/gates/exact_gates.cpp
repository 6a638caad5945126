#include "harness/gates/exact_gates.hpp"

#include "harness/data/infinity.hpp"
#include "reference/attention.hpp"
#include "reference/bounds.hpp"
#include "reference/numerics/formats.hpp"
#include "reference/visibility.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <span>
#include <vector>

namespace fmha::harness::detail {
namespace {

/// Units in the last place by which a row that is a copy of one V row may differ from it (B.6.3). Every
/// factor that is not a power of two is one more fp32 rounding before the last one: P's pre-scale, scale_o,
/// and V's descale, which shows in values that are not on V's own grid. A kernel that rounds its operands (u_m)
/// copies the rounded value: a relative error of u_m is at most u_m·2^24 units of fp32.
std::int64_t copied_row_ulps(const JudgeContext& context, bool v_on_grid) {
    const auto& kernel = context.expected.numerics;
    if (context.outputs.at("o").type() == ElementType::fp32)
        return 2 + static_cast<std::int64_t>(std::ceil(kernel.u_m * 0x1p24));
    return has_exact_prescale(context) && v_on_grid && is_power_of_two(context.expected.scale_o) ? 0 : 1;
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

} // namespace

bool is_power_of_two(double value) {
    int exponent = 0;
    return value != 0.0 && std::abs(std::frexp(value, &exponent)) == 0.5;
}

bool has_exact_prescale(const JudgeContext& context) {
    const double floor = context.expected.numerics.f_p;
    return floor == 0.0 || is_power_of_two(reference::rounding_floor(context.p_type) / floor);
}

void reject_row(const Outputs::Tensor& tensor, const reference::RowId& id, const RowMistake& mistake,
                ExactGate& gate, Findings& findings) {
    if (mistake.columns.empty()) return;
    gate.fail(mistake.first);
    for (const std::int64_t c : mistake.columns) findings.wrong(tensor, id, c);
}

RowMistake differs_from_v_row(const JudgeContext& context, const reference::RowId& id, std::int64_t j) {
    const reference::AttentionArgs& args = context.args;
    const Outputs::Tensor& o = context.outputs.at("o");
    const std::int64_t hk = id.h / (args.shape.nhead_q / args.shape.nhead_k);
    const std::int64_t index = o.rows().index(id);
    RowMistake mistake;
    for (std::int64_t c = 0; c < args.shape.hdim_v; ++c) {
        const double v = reference::value_of(args, id.b, hk, j, c);
        const double exact = context.expected.scale_o * v;
        const bool on_grid = reference::round_to(args.v.type, v) == v;
        const double target = reference::round_to(o.type(), exact);
        if (ulps_between(o.type(), o.code(index, c), target) <= copied_row_ulps(context, on_grid)) continue;
        mistake.add(c, [&] {
            return fmt::format("{} column {}: got {:.9g}, V of key {} gives {:.9g}", o.rows().place(id), c,
                               o.value(index, c), j, target);
        });
    }
    return mistake;
}

namespace {

/// The visible keys of row `index` whose byte is not that of D-5.
std::vector<std::int64_t> wrong_random_bytes(const reference::AttentionArgs& args,
                                             const Outputs::Tensor& bytes, std::int64_t index) {
    const auto& id = bytes.rows().id(index);
    std::vector<std::int64_t> wrong;
    const auto look = [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t j = begin; j < end; ++j)
            if (bytes.code(index, j) != reference::stored_random_byte(args, id, j)) wrong.push_back(j);
    };
    const reference::KeyRanges keys = reference::key_ranges(args, id);
    look(keys.sink_begin, keys.sink_end);
    look(keys.first, keys.end);
    return wrong;
}

void judge_random_bytes(const JudgeContext& context, Findings& findings, Judgement& judgement) {
    const Outputs::Tensor* bytes = context.outputs.find("randval");
    if (bytes == nullptr) return;
    ExactGate gate("G5.1", "randval");
    for (std::int64_t index = 0; index < bytes->rows().size(); ++index) {
        const std::vector<std::int64_t> wrong = wrong_random_bytes(context.args, *bytes, index);
        if (wrong.empty()) continue;
        const std::int64_t j = wrong.front();
        const auto& id = bytes->rows().id(index);
        gate.fail(fmt::format("{} key {}: got byte {}, expected {}", bytes->rows().place(id), j,
                              bytes->code(index, j), reference::stored_random_byte(context.args, id, j)));
        findings.wrong_row(*bytes, id, wrong);
    }
    judgement.gates.push_back(gate.verdict());
}

/// O must be +0, LSE −∞ or the sink logit.
void judge_empty_row(const JudgeContext& context, std::int64_t index, ExactGate& gate, Findings& findings) {
    const Outputs::Tensor& o = context.outputs.at("o");
    const auto& id = o.rows().id(index);
    RowMistake mistake;
    for (std::int64_t c = 0; c < o.columns(index); ++c) {
        if (o.code(index, c) == 0) continue;
        mistake.add(c, [&] {
            return fmt::format("{} sees no key but column {} is {:.9g}, not +0", o.rows().place(id), c,
                               o.value(index, c));
        });
    }
    reject_row(o, id, mistake, gate, findings);
    const Outputs::Tensor* lse = context.outputs.find("lse");
    if (lse == nullptr) return;
    const double got = lse->value(index, 0), wanted = reference::sink_logit_of(context.args, id.h);
    const std::int64_t keys = reference::entry_lengths(context.args, id.b).seqlen_k;
    const double limit = reference::empty_row_lse_limit(context.expected.numerics, keys, wanted);
    if (std::isinf(wanted) ? got == wanted : std::abs(got - wanted) <= limit) return;
    gate.fail(fmt::format("{} sees no key but its LSE is {}, not {}", o.rows().place(id), got, wanted));
    findings.wrong(*lse, id, -1);
}

/// The LSE of a row of one key is its score (B.6.3). Rows that the oracles compute anyway are judged by G3.
void judge_single_lse(const JudgeContext& context, std::span<const reference::RowId> rows, ExactGate& gate,
                      Findings& findings) {
    const Outputs::Tensor* lse = context.outputs.find("lse");
    if (lse == nullptr) return;
    constexpr std::size_t at_once = 1024; // a row of the oracle's tables takes kilobytes
    for (std::size_t begin = 0; begin < rows.size(); begin += at_once) {
        const auto expected =
            reference::attention(context.args, rows.subspan(begin, std::min(at_once, rows.size() - begin)),
                                 {.numerics = context.expected.numerics, .threads = 1});
        for (std::int64_t row = 0; row < expected.lse.size(); ++row) {
            const auto& id = expected.rows[static_cast<std::size_t>(row)];
            const double got = lse->value(lse->rows().index(id), 0), wanted = expected.lse(row);
            if (std::abs(got - wanted) <= reference::lse_limit(expected, row)) continue;
            gate.fail(fmt::format("{} sees one key, whose score is {}, but its LSE is {}",
                                  lse->rows().place(id), wanted, got));
            findings.wrong(*lse, id, -1);
        }
    }
}

void judge_special_rows(const JudgeContext& context, Findings& findings, Judgement& judgement) {
    const Outputs::Tensor& o = context.outputs.at("o");
    ExactGate empty("G5.2", "o"), single("G5.3", "o");
    bool any_empty = false, any_single = false;
    std::vector<reference::RowId> singles; // beyond the sample
    const bool dropout = context.args.dropout.p_drop > 0.0F;
    for (std::int64_t index = 0; index < o.rows().size(); ++index) {
        const auto& id = o.rows().id(index);
        const reference::EndKeys keys = reference::end_keys(context.args, id);
        if (keys.none()) {
            any_empty = true;
            judge_empty_row(context, index, empty, findings);
        } else if (keys.single() && !dropout && reference::sink_logit_of(context.args, id.h) == -infinity) {
            any_single = true;
            if (!std::ranges::binary_search(context.expected.rows, id)) singles.push_back(id);
            reject_row(o, id, differs_from_v_row(context, id, keys.first), single, findings);
        }
    }
    if (context.fill != Fill::huge) judge_single_lse(context, singles, single, findings);
    if (any_empty) judgement.gates.push_back(empty.verdict());
    if (any_single) judgement.gates.push_back(single.verdict());
}

/// Why a row of an edge fill may hold something else than the V row of its winning key; empty when it may not.
std::string edge_does_not_apply(const JudgeContext& context) {
    const reference::AttentionArgs& args = context.args;
    if (!context.edge)
        return "the fill has no code for this type, head dimension and softmax scale, so no key wins";
    if (args.score.logits_soft_cap != 0.0F || args.dropout.p_drop != 0.0F ||
        args.score.bias_type != BiasType::no_bias || args.score.sink_logit != nullptr)
        return "no key wins alone under a soft-cap, dropout, a bias or a sink logit";
    return {};
}

void judge_edge_rows(const JudgeContext& context, Findings& findings, Judgement& judgement) {
    if (!has_edge_rows(context.fill, context.inputs)) return;
    const bool last_wins = context.fill == Fill::edge_last;
    ExactGate gate("exact", "o");
    const std::string excuse = edge_does_not_apply(context);
    std::int64_t seeing = 0, decided = 0;
    const Outputs::Tensor& o = context.outputs.at("o");
    for (const auto& id : o.rows().ids()) {
        const reference::EndKeys keys = reference::end_keys(context.args, id);
        if (keys.none()) continue;
        ++seeing;
        if (!excuse.empty()) continue;
        const std::int64_t winner = last_wins ? keys.last : keys.first;
        const std::int64_t seqlen_k = reference::entry_lengths(context.args, id.b).seqlen_k;
        if (!keys.single() && !context.edge->decides(winner, seqlen_k, last_wins)) continue;
        ++decided;
        reject_row(o, id, differs_from_v_row(context, id, winner), gate, findings);
    }
    if (seeing == 0) return;
    if (!excuse.empty()) {
        gate.fail(excuse);
    } else if (decided == 0) {
        if (context.args.num_splits > 1) return; // who judges all splits asks whether another one decides
        return judgement.gates.push_back(undecided_edge_rows("o", seeing));
    }
    judgement.gates.push_back(gate.verdict());
}

} // namespace

bool has_edge_rows(Fill fill, InputOrigin inputs) {
    return inputs == InputOrigin::fill && (fill == Fill::edge_last || fill == Fill::edge_first);
}

GateVerdict undecided_edge_rows(const std::string& tensor, std::int64_t seeing) {
    ExactGate gate("exact", tensor);
    gate.fail(fmt::format("the fill decides none of the {} rows that see a key: each of them ends where "
                          "keys share a rank",
                          seeing));
    return gate.verdict();
}

void judge_exactly(const JudgeContext& context, Findings& findings, Judgement& judgement) {
    judge_random_bytes(context, findings, judgement);
    judge_special_rows(context, findings, judgement);
    judge_edge_rows(context, findings, judgement);
    judge_tie_rows(context, findings, judgement);
    judge_finite(context.outputs, judgement);
}

} // namespace fmha::harness::detail
