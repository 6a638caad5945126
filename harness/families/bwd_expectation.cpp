#include "harness/families/bwd_expectation.hpp"

#include "dispatcher/system/stopwatch.hpp"
#include "harness/families/attention_expectation.hpp"
#include "harness/gates/bwd_gates.hpp"
#include "reference/forward.hpp"
#include "reference/numerics/formats.hpp"

#include <algorithm>
#include <cmath>

namespace fmha::harness {
namespace {

using reference::GradientRequest;
using reference::Gradients;

/// Pairs (row, key) times channels up to which the slow oracle checks every line of the fast one.
constexpr double gradient_work_of_full_agreement = 4e6;

bool any_nan(const reference::GradientTable& table) {
    return std::ranges::any_of(table.value, [](double x) { return std::isnan(x); }) ||
           std::ranges::any_of(table.error, [](double x) { return std::isnan(x); });
}
/// A NaN in the reference is an error of the harness, never a reason to pass.
bool any_nan(const Gradients& g) {
    return any_nan(g.dq) || any_nan(g.d) || any_nan(g.dbias) || any_nan(g.dk) || any_nan(g.dv) ||
           any_nan(g.d_sink);
}

} // namespace

void store_forward_results(const BwdTensors& tensors) {
    const BwdArgs stored = tensors.args();
    FwdArgs args = reference::forward_part(stored);
    args.dropout = dropout_of_bytes(tensors.of_case());
    const auto rows = reference::all_rows(args);
    const auto result = reference::forward(args, rows, {.companions = false, .numerics = {}, .threads = 1});
    const auto put = [](const TensorView& view, std::int64_t at, double value) {
        store_code(view.data, view.type, at, reference::encode(view.type, value));
    };
    for (std::size_t n = 0; n < rows.size(); ++n) {
        const auto [b, h, i] = rows[n];
        const EntryGeometry& entry = tensors.geometry().entries[static_cast<std::size_t>(b)];
        const auto line = static_cast<std::int64_t>(n);
        put(stored.lse, stored.lse.offset(b, h, entry.start_q + i, 0), result.lse(line));
        for (std::int64_t c = 0; c < args.shape.hdim_v; ++c)
            put(stored.o, stored.o.offset(b, h, entry.start_q + i, c), result.o(line, c));
        // Given bytes are inputs of the case; those of forward's kernel are results like O.
        if (!stored.randval.present() || !runs_forward(tensors.of_case())) continue;
        for (std::int64_t j = 0; j < entry.seqlen_k; ++j)
            store_code(stored.randval.data, ElementType::uint8,
                       stored.randval.offset(b, h, entry.start_q + i, j),
                       reference::stored_random_byte(args, rows[n], j));
    }
}

GradientRequest gradient_request(const BwdTensors& tensors) {
    const BwdArgs args = tensors.args();
    const Case& c = tensors.of_case();
    return {.rows = c.sampled_rows ? reference::sampled_rows(args, c.seed) : reference::all_rows(args),
            .keys = c.sampled_rows ? reference::sampled_keys(args, c.seed) : reference::all_keys(args),
            .dbias = args.dbias.present(),
            .d_sink = args.d_sink != nullptr};
}

FwdArgs forward_before(const BwdArgs& args) {
    FwdArgs forward = reference::forward_part(args);
    forward.o = args.o;
    forward.lse = args.lse;
    forward.randval = args.randval;
    return forward;
}

BwdExpectation::BwdExpectation(const BwdTensors& tensors, const BackwardKernels& kernels, int threads)
    : tensors_(tensors), kernels_(kernels), args_(tensors.args()), threads_(threads),
      request_(gradient_request(tensors)) {}

double BwdExpectation::oracle_disagreement() {
    if (runs_forward(tensors_.of_case())) store_forward_results(tensors_);
    const auto channels = static_cast<double>(args_.shape.hdim_q + args_.shape.hdim_v);
    const Geometry& geometry = tensors_.geometry();
    const double work =
        channels * (static_cast<double>(request_.rows.size()) * static_cast<double>(geometry.max_seqlen_k) +
                    static_cast<double>(request_.keys.size()) * static_cast<double>(geometry.max_seqlen_q));
    GradientRequest sample = request_;
    sample.rows = lines_of_agreement(request_.rows, work, gradient_work_of_full_agreement);
    sample.keys = lines_of_agreement(request_.keys, work, gradient_work_of_full_agreement);
    const reference::GradientOptions options{.numerics = {}, .threads = threads_};
    return reference::oracle_disagreement(
        reference::backward(args_, sample, options, reference::Oracle::matrix),
        reference::backward(args_, sample, options, reference::Oracle::row_by_row));
}

const Gradients& BwdExpectation::gradients(const Numerics& numerics) {
    // Forward's kernel may have stored other values than before.
    const bool kept = !runs_forward(tensors_.of_case()) && expected_ && expected_->numerics == numerics &&
                      parts_ == kernels_.dq_parts;
    if (kept) return *expected_;
    parts_ = kernels_.dq_parts;
    return expected_.emplace(reference::backward(
        args_, request_, {.numerics = numerics, .dq_parts = parts_, .threads = threads_}));
}

StageVerdict BwdExpectation::judge(KernelFamily stage, const Outputs& outputs, const Numerics& numerics,
                                   InputOrigin inputs) {
    if (stage == KernelFamily::fwd)
        return AttentionExpectation(tensors_.source(), reference::attention_of(forward_before(args_)),
                                    threads_)
            .judge(stage, outputs, numerics, inputs);
    const system::Stopwatch watch;
    StageVerdict verdict;
    const Gradients* expected = nullptr;
    if (stage == KernelFamily::bwd_dot_do_o) {
        const bool kept = !runs_forward(tensors_.of_case()) && row_sums_ && row_sums_->numerics == numerics;
        if (!kept) {
            GradientRequest request = request_;
            request.keys.clear();
            request.dbias = request.dq = false;
            row_sums_ = reference::backward(args_, request, {.numerics = numerics, .threads = threads_});
        }
        expected = &*row_sums_;
    } else if (stage == KernelFamily::bwd_dq_dk_dv) {
        expected = &gradients(numerics);
    } else {
        // The last stage adds and rounds; the losses of dQ before it are the main kernel's.
        expected = expected_ ? &*expected_ : &gradients(numerics);
    }
    verdict.reference_seconds = watch.seconds();
    verdict.rows = static_cast<std::int64_t>(stage == KernelFamily::bwd_dq_dk_dv ? request_.keys.size()
                                                                                 : request_.rows.size());
    verdict.judgement = judge_backward(args_, outputs, *expected, tensors_.of_case().fill, inputs);
    if (any_nan(*expected)) verdict.mistrust = "the reference is NaN";
    return verdict;
}

void BwdExpectation::each_bounded(KernelFamily stage, const Outputs& outputs,
                                  const std::function<void(const Bounded&)>& visit) {
    const auto& expected = stage == KernelFamily::bwd_dot_do_o ? row_sums_ : expected_;
    if (stage != KernelFamily::fwd && expected)
        each_bounded_gradient(args_, outputs, *expected, tensors_.of_case().fill, visit);
}

} // namespace fmha::harness
