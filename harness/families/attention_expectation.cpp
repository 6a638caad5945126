#include "harness/families/attention_expectation.hpp"

#include "dispatcher/system/stopwatch.hpp"
#include "harness/gates/fwd_bounded.hpp"
#include "reference/bounds.hpp"
#include "reference/numerics/formats.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace fmha::harness {
namespace {

/// Pairs (row, key) times channels up to which the slow oracle checks every row of the fast one.
constexpr double work_of_full_agreement = 4e7;

/// Whether an O of zeros contradicts the reference: it fails G1. Where that gate does not apply, a row rounds to another number in which
/// some key has the largest weight of all, so that no cast of P loses it.
bool must_not_be_zero(const Judgement& judgement, const reference::ForwardRows& expected, ElementType o) {
    for (const GateVerdict& gate : judgement.gates)
        if (gate.gate == "G1") return !gate.passed;
    for (std::int64_t row = 0; row < expected.o.rows(); ++row)
        if (expected.visible_keys(row) > 0 && expected.row_max(row) == expected.score_max(row) &&
            std::ranges::any_of(expected.o.row(row), [&](double x) {
                return std::abs(x * expected.scale_o) > 2.0 * reference::rounding_floor(o);
            }))
            return true;
    return false;
}

} // namespace

std::vector<reference::RowId> expected_rows(const Case& c, const reference::AttentionArgs& args) {
    return c.sampled_rows ? reference::sampled_rows(args, c.seed) : reference::all_rows(args);
}

double attention_disagreement(const reference::AttentionArgs& args, const std::vector<reference::RowId>& rows,
                              int threads) {
    double work = 0.0;
    const auto channels = static_cast<double>(args.shape.hdim_q + args.shape.hdim_v);
    for (const auto& row : rows)
        work += static_cast<double>(reference::entry_lengths(args, row.b).seqlen_k) * channels;
    const auto sample = lines_of_agreement(rows, work, work_of_full_agreement);
    const reference::ForwardOptions with{.numerics = {}, .threads = threads};
    const reference::ForwardOptions without{.companions = false, .numerics = {}, .threads = threads};
    return reference::oracle_disagreement(
        reference::attention(args, sample, with, reference::Oracle::matrix),
        reference::attention(args, sample, without, reference::Oracle::row_by_row));
}

bool has_nan(const reference::ForwardRows& rows) {
    const auto is_nan = [](double x) { return std::isnan(x); };
    return std::ranges::any_of(rows.o.values(), is_nan) || std::ranges::any_of(rows.lse.values(), is_nan);
}

AttentionExpectation::AttentionExpectation(const DataSource& source, reference::AttentionArgs args,
                                           int threads)
    : AttentionExpectation(source, args, expected_rows(source.c, args), threads) {}

AttentionExpectation::AttentionExpectation(const DataSource& source, reference::AttentionArgs args,
                                           std::vector<reference::RowId> rows, int threads)
    : source_(source), args_(args), threads_(threads), rows_(std::move(rows)) {}

double AttentionExpectation::oracle_disagreement() {
    return source_.c.fill == Fill::huge ? 0.0 : attention_disagreement(args_, rows_, threads_);
}

const reference::ForwardRows& AttentionExpectation::for_numerics(const Numerics& numerics) {
    if (!expected_ || !(expected_->numerics == numerics))
        expected_ = reference::attention(args_, rows_, {.numerics = numerics, .threads = threads_});
    return *expected_;
}

StageVerdict AttentionExpectation::judge(KernelFamily, const Outputs& outputs, const Numerics& numerics,
                                         InputOrigin inputs) {
    const system::Stopwatch watch;
    const reference::ForwardRows& expected = for_numerics(numerics);
    StageVerdict verdict;
    verdict.reference_seconds = watch.seconds();
    verdict.rows = static_cast<std::int64_t>(expected.rows.size());
    const Fill fill = source_.c.fill;
    const ElementTypes& types = source_.geometry.types;
    const JudgeContext context{args_, outputs, expected, fill, source_.fill.edge(), types.p, inputs};
    verdict.judgement = harness::judge(context);
    if (fill != Fill::huge) {
        if (!plain_) plain_ = plain_pass(args_, rows_, types);
        verdict.judgement.gates.push_back(low_precision_yardstick(context, types, *plain_));
    }
    const Outputs::Tensor& o = outputs.at("o");
    if (has_nan(expected))
        verdict.mistrust = "the reference is NaN";
    else if (o.all_zero() && must_not_be_zero(verdict.judgement, expected, o.type()))
        verdict.mistrust = "every element of O is zero and the reference is not";
    return verdict;
}

void AttentionExpectation::each_bounded(KernelFamily, const Outputs& outputs,
                                        const std::function<void(const Bounded&)>& visit) {
    if (!expected_ || source_.c.fill == Fill::huge) return;
    visit(BoundedO(args_, *expected_, outputs.at("o").type(), source_.c.fill, source_.geometry.types.p));
    if (outputs.find("lse") != nullptr) visit(BoundedLse(*expected_));
}

} // namespace fmha::harness
