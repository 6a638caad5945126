#include "harness/run/fwd_runner.hpp"

#include "dispatcher/types/error.hpp"
#include "harness/cases/case_enums.hpp"
#include "harness/cases/case_problem.hpp"
#include "harness/data/fwd_tensors.hpp"
#include "harness/gates/fwd_gates.hpp"
#include "harness/gates/fwd_outputs.hpp"
#include "harness/run/case_tensors.hpp"
#include "harness/run/fwd_execution.hpp"
#include "harness/run/shell_word.hpp"
#include "kernels/catalog/glob.hpp"
#include "reference/bounds.hpp"
#include "reference/numerics/formats.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fmt/format.h>
#include <new>
#include <optional>

namespace fmha::harness {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Pairs (row, key) times channels up to which the slow oracle checks every row of the fast one.
constexpr double work_of_full_agreement = 4e7;

CaseResult blank_result(const FwdCase& c) {
    CaseResult result;
    result.name = c.id;
    result.about = c.about;
    result.family = std::string(to_string(c.family));
    result.tier = std::string(to_string(c.tier));
    result.labels = c.labels;
    result.seed = c.seed;
    result.sampled = c.sampled_rows;
    return result;
}

/// A refusal, judged against what the case expects. `named`: for the rule or the reason that it expects.
void judge_refusal(CaseResult& result, const FwdCase& c, Expectation kind, bool named,
                   const std::string& sentence) {
    result.outcome =
        c.expect == kind && named ? Outcome::refused_as_predicted : Outcome::refused_unexpectedly;
    result.message = sentence;
    if (c.expect == kind && !named)
        result.message = fmt::format("refused, but not for {}: {}", c.expect_rule, sentence);
}

/// No kernel takes the problem. That the architecture lacks the type says nothing about a case that is about something
/// else.
void judge_no_kernel(CaseResult& result, const FwdCase& c, const ProblemRefused& refusal, bool type_absent,
                     const std::string& arch) {
    const auto wanted = parse_reason(c.expect_rule);
    const bool named = c.expect_rule.empty() || (wanted && wanted == refusal.reason());
    if (type_absent && !(c.expect == Expectation::no_kernel && named)) {
        result.outcome = Outcome::type_absent;
        result.message = fmt::format("T-1: {} has no kernels of type {}", arch, to_string(c.data_type));
        return;
    }
    judge_refusal(result, c, Expectation::no_kernel, named, refusal.what());
}

std::string describe(const Numerics& n) {
    return fmt::format(
        "u_o={:.3g} f_o={:.3g} u_p={:.3g} f_p={:.3g} u_m={:.3g} u_a={:.3g} eps_e={:.3g} eps_t={:.3g}{}{}",
        n.u_o, n.f_o, n.u_p, n.f_p, n.u_m, n.u_a, n.eps_e, n.eps_t, n.normalised_p ? " normalised P" : "",
        n.truncating ? " truncating" : "");
}

/// The reference of one case: rows, agreement of the two oracles, and the expected values for one kernel's
/// numerics.
class FwdExpectation {
  public:
    FwdExpectation(const FwdCase& c, const FwdArgs& args, int threads)
        : args_(args), threads_(threads),
          rows_(c.sampled_rows ? reference::sampled_rows(args, c.seed) : reference::all_rows(args)) {}

    /// Distance of the oracles in units of the agreement bound (B.1), on every row of a small case and on
    /// evenly spread rows of a large one.
    double oracle_disagreement() const {
        double work = 0.0;
        const auto channels = static_cast<double>(args_.shape.hdim_q + args_.shape.hdim_v);
        for (const auto& row : rows_)
            work += static_cast<double>(reference::entry_lengths(args_, row.b).seqlen_k) * channels;
        const auto stride = static_cast<std::size_t>(1.0 + work / work_of_full_agreement);
        std::vector<reference::RowId> sample;
        for (std::size_t r = 0; r < rows_.size(); r += stride) sample.push_back(rows_[r]);
        const reference::ForwardOptions with{.numerics = {}, .threads = threads_};
        const reference::ForwardOptions without{.companions = false, .numerics = {}, .threads = threads_};
        return reference::oracle_disagreement(
            reference::forward(args_, sample, with, reference::Oracle::matrix),
            reference::forward(args_, sample, without, reference::Oracle::row_by_row));
    }

    const reference::ForwardRows& for_numerics(const Numerics& numerics) {
        if (!expected_ || !(expected_->numerics == numerics))
            expected_ = reference::forward(args_, rows_, {.numerics = numerics, .threads = threads_});
        return *expected_;
    }

    /// A NaN in the reference is an error of the harness, never a reason to pass.
    static bool has_nan(const reference::ForwardRows& rows) {
        return rows.o.size() > 0 && (rows.o.hasNaN() || rows.lse.hasNaN());
    }

  private:
    const FwdArgs& args_;
    int threads_;
    std::vector<reference::RowId> rows_;
    std::optional<reference::ForwardRows> expected_;
};

/// Whether an O of zeros contradicts the reference: it fails G1 or, where that gate does not apply, a row in which some
/// key has the largest weight of all (so that no cast of P loses it) rounds to another number.
bool must_not_be_zero(const CaseResult& result, const reference::ForwardRows& expected, ElementType o) {
    for (const GateVerdict& gate : result.gates)
        if (gate.gate == "G1") return !gate.passed;
    for (Eigen::Index row = 0; row < expected.o.rows(); ++row)
        if (expected.visible_keys(row) > 0 && expected.row_max(row) == expected.score_max(row) &&
            expected.o.row(row).cwiseAbs().maxCoeff() * std::abs(expected.scale_o) >
                2.0 * reference::rounding_floor(o))
            return true;
    return false;
}

/// Fills in everything that the gates say about `outputs`. Returns why the numbers cannot be believed either way; empty
/// when they can.
std::string judge_outputs(CaseResult& result, const Outputs& outputs, const Numerics& numerics,
                          const FwdTensors& tensors, FwdExpectation& expectation, double disagreement,
                          bool data_of_fill) {
    const auto start = Clock::now();
    const FwdArgs args = tensors.args();
    const Fill fill = tensors.fwd_case().fill;
    const auto& expected = expectation.for_numerics(numerics);
    result.numerics = describe(numerics);
    result.reference_seconds = seconds_since(start);
    const FwdJudgeContext context{
        args, outputs, expected, fill, tensors.fill().edge(), tensors.geometry().types.p, data_of_fill};
    Judgement judgement = judge(context);
    if (fill != Fill::huge)
        judgement.gates.push_back(low_precision_yardstick(context, tensors.geometry().types));
    result.rows = static_cast<std::int64_t>(expected.rows.size());
    result.elements = judgement.elements;
    result.worst = std::move(judgement.worst);
    result.pattern = std::move(judgement.pattern);
    result.gates = std::move(judgement.gates);
    if (disagreement > 1.0)
        return fmt::format("the two oracles are {:.3g} times their bound apart", disagreement);
    if (FwdExpectation::has_nan(expected)) return "the reference is NaN";
    if (outputs.at("o").all_zero() && must_not_be_zero(result, expected, outputs.at("o").type()))
        return "every element of O is zero and the reference is not";
    return {};
}

/// The outcome that follows from the gates, unless the numbers cannot be believed.
void conclude(CaseResult& result, const std::string& mistrust) {
    result.outcome = Outcome::passed;
    if (const GateVerdict* gate = result.first_failure()) {
        result.outcome = Outcome::failed;
        result.message = fmt::format("{} {}: {}", gate->gate, gate->tensor, gate->detail);
    }
    if (mistrust.empty()) return;
    result.outcome = Outcome::mistrusted;
    result.message = mistrust + (result.message.empty() ? std::string() : "; " + result.message);
}

void run_candidate(CaseResult& result, const FwdCase& c, const Candidate& candidate, FwdTensors& tensors,
                   FwdTensors* elsewhere, FwdExpectation& expectation, double disagreement,
                   const FwdRunOptions& options) {
    result.numerics = describe(candidate.numerics);
    if (!c.expect_kernel.empty() && !options.all_kernels &&
        !catalog::glob_match(c.expect_kernel, result.kernel)) {
        result.outcome = Outcome::failed;
        result.message = fmt::format("planned {}, expected {}", result.kernel, c.expect_kernel);
        return;
    }
    result.kernel_seconds = std::numeric_limits<double>::infinity();
    std::vector<GateVerdict> run_gates;
    const int repeats = options.repeats > 0 ? options.repeats : c.repeats;
    const Outputs outputs =
        FwdExecution(tensors, elsewhere, candidate).run(repeats, run_gates, result.kernel_seconds);

    const std::string mistrust =
        judge_outputs(result, outputs, candidate.numerics, tensors, expectation, disagreement, true);
    result.gates.insert(result.gates.end(), run_gates.begin(), run_gates.end());
    conclude(result, mistrust);
}

/// `run_candidate`, with what a target throws turned into an outcome.
void judge_candidate(CaseResult& result, const FwdCase& c, const Candidate& candidate, FwdTensors& tensors,
                     FwdTensors* elsewhere, FwdExpectation& expectation, double disagreement,
                     const FwdRunOptions& options) {
    try {
        run_candidate(result, c, candidate, tensors, elsewhere, expectation, disagreement, options);
    } catch (const DeviceLost& error) {
        result.outcome = Outcome::crashed;
        result.message = error.what();
    } catch (const DeviceOutOfMemory& error) {
        result.not_run_reason = NotRunReason::no_memory;
        result.message = error.what();
    } catch (const std::bad_alloc&) {
        result.not_run_reason = NotRunReason::no_memory;
        result.message = end_of_exception().answer;
    } catch (const Error& error) {
        result.outcome = Outcome::failed;
        result.message = fmt::format("the launch was refused: {}", error.what());
    }
}

CaseResult not_built_result(const CaseResult& blank, const FwdCase& c, const Candidate& candidate,
                            const FwdRunOptions& options) {
    CaseResult result = blank;
    result.kernel = candidate.name;
    result.not_run_reason = NotRunReason::not_built;
    result.message = candidate.not_built;
    result.reproduce = reproducing_command(c, options, candidate.name);
    return result;
}

/// The kernels to run; nullopt when `result` has its outcome already, because there are none.
std::optional<std::vector<Candidate>> candidates_of(CaseResult& result, const FwdCase& c,
                                                    const KernelSource& source,
                                                    const FwdRunOptions& options) {
    std::vector<Candidate> candidates;
    try {
        const Problem problem = to_problem(c, options.arch);
        if (c.expect == Expectation::invalid_problem) {
            result.outcome = Outcome::failed;
            result.message = fmt::format("the problem was accepted, {} was to refuse it", c.expect_rule);
            return std::nullopt;
        }
        candidates = options.all_kernels ? source.accepting(problem) : std::vector{source.planned(problem)};
    } catch (const ProblemError& error) {
        const bool named = c.expect_rule.empty() || error.rule() == c.expect_rule;
        judge_refusal(result, c, Expectation::invalid_problem, named, error.what());
        return std::nullopt;
    } catch (const ProblemRefused& error) {
        judge_no_kernel(result, c, error, !source.has_type(c.data_type), options.arch);
        return std::nullopt;
    } catch (const UnsupportedInvocation& error) {
        result.not_run_reason = NotRunReason::target_cannot;
        result.message = error.what();
        return std::nullopt;
    } catch (const DeviceLost& error) {
        result.outcome = Outcome::crashed;
        result.message = error.what();
        return std::nullopt;
    } catch (const DeviceOutOfMemory& error) {
        result.not_run_reason = NotRunReason::no_memory;
        result.message = error.what();
        return std::nullopt;
    } catch (const DeviceError& error) {
        result.outcome = Outcome::failed;
        result.message = fmt::format("the kernel could not be loaded: {}", error.what());
        return std::nullopt;
    }
    if (c.expect == Expectation::no_kernel) {
        result.outcome = Outcome::failed;
        result.message =
            fmt::format("a kernel was found, {}; the case expects none", candidates.front().name);
        return std::nullopt;
    }
    std::erase_if(candidates, [&](const Candidate& candidate) {
        return !options.kernel_filter.empty() && !catalog::glob_match(options.kernel_filter, candidate.name);
    });
    return candidates;
}

} // namespace

CaseResult judge_given_outputs(FwdTensors& tensors, const Numerics& numerics) {
    const FwdArgs args = tensors.args();
    const FwdCase& c = tensors.fwd_case();
    CaseResult result = blank_result(c);
    result.kernel = "given";
    FwdExpectation expectation(c, args, 0);
    const double disagreement = c.fill == Fill::huge ? 0.0 : expectation.oracle_disagreement();
    // Whoever brings inputs need not have the fill's.
    const std::string mistrust =
        judge_outputs(result, fwd_outputs(args), numerics, tensors, expectation, disagreement, false);
    conclude(result, mistrust);
    return result;
}

CaseResult lost_result(const FwdCase& c, const FwdRunOptions& options, const TaskEnd& end) {
    CaseResult result = blank_result(c);
    result.message = end.answer;
    if (end.kind == TaskEnd::Kind::no_memory)
        result.not_run_reason = NotRunReason::no_memory;
    else
        result.outcome = end.kind == TaskEnd::Kind::timed_out ? Outcome::timed_out : Outcome::crashed;
    result.reproduce = reproducing_command(c, options, "");
    return result;
}

CaseResult unfinished_result(const FwdCase& c, const FwdRunOptions& options, NotRunReason reason) {
    CaseResult result = blank_result(c);
    result.not_run_reason = reason;
    result.message = reason == NotRunReason::after_failure
                         ? "the run ended at an earlier case"
                         : "the run was interrupted before this case had finished";
    result.reproduce = reproducing_command(c, options, "");
    return result;
}

std::string reproducing_command(const FwdCase& c, const FwdRunOptions& options, const std::string& kernel) {
    std::string command = fmt::format("fmha verify {} --arch {}", shell_word(c.id), options.arch);
    command += options.target_flags;
    if (!options.cases_root.empty()) command += " --cases-root " + shell_word(options.cases_root);
    if (options.all_kernels && !kernel.empty()) command += " --kernels all --kernel " + shell_word(kernel);
    if (!options.where.empty()) command += " --where " + shell_word(options.where);
    if (options.repeats > 0) command += fmt::format(" --repeats {}", options.repeats);
    return command;
}

std::vector<CaseResult> run_fwd_case(const FwdCase& c, const KernelSource& source,
                                     const FwdRunOptions& options) {
    const auto start = Clock::now();
    CaseResult blank = blank_result(c);
    blank.reproduce = reproducing_command(c, options, "");
    const auto only_blank = [&] {
        blank.seconds = seconds_since(start);
        return std::vector{blank};
    };

    auto candidates = candidates_of(blank, c, source, options);
    if (!candidates) return only_blank();
    std::vector<CaseResult> results;
    for (const Candidate& candidate : *candidates)
        if (!candidate.instance) results.push_back(not_built_result(blank, c, candidate, options));
    std::erase_if(*candidates, [](const Candidate& candidate) { return !candidate.instance; });
    if (candidates->empty()) return results;

    const Fp8Flavour flavour = fp8_flavour(options.arch);
    if (exceeds_limit(blank, c, flavour, options)) return only_blank();
    std::optional<CaseTensors> tensors;
    try {
        tensors.emplace(c, flavour, options);
    } catch (const NoRoomForTensor& error) {
        blank.not_run_reason = NotRunReason::no_memory;
        blank.message = error.what();
        return only_blank();
    }
    const FwdArgs args = tensors->here().args();
    FwdExpectation expectation(c, args, options.reference_threads);
    const auto agreement_start = Clock::now();
    const double disagreement = c.fill == Fill::huge ? 0.0 : expectation.oracle_disagreement();
    const double agreement_seconds = seconds_since(agreement_start);

    for (const Candidate& candidate : *candidates) {
        const auto kernel_start = Clock::now();
        CaseResult result = blank;
        result.kernel = candidate.name;
        result.reproduce = reproducing_command(c, options, candidate.name);
        judge_candidate(result, c, candidate, tensors->here(), tensors->elsewhere(), expectation,
                        disagreement, options);
        result.reference_seconds += agreement_seconds;
        result.seconds = seconds_since(kernel_start);
        if (&candidate == &candidates->front())
            result.seconds += std::chrono::duration<double>(kernel_start - start).count();
        results.push_back(std::move(result));
    }
    return results;
}

} // namespace fmha::harness
