#include "harness/run/case_runner.hpp"

#include "dispatcher/system/stopwatch.hpp"
#include "dispatcher/types/error.hpp"
#include "harness/cases/case_enums.hpp"
#include "harness/cases/case_problem.hpp"
#include "harness/cases/shape_matrix.hpp"
#include "harness/gates/findings.hpp"
#include "harness/run/case_tensors.hpp"
#include "harness/run/device_splits.hpp"
#include "harness/run/execution.hpp"
#include "kernels/catalog/glob.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <new>
#include <numeric>
#include <optional>
#include <span>

namespace fmha::harness {
namespace {

/// A refusal, judged against the expectation of the case. `named`: for the rule or the reason that it expects.
void judge_refusal(CaseResult& result, const Case& c, Expectation kind, bool named,
                   const std::string& sentence) {
    result.outcome =
        c.expect == kind && named ? Outcome::refused_as_predicted : Outcome::refused_unexpectedly;
    result.message = sentence;
    if (c.expect == kind && !named)
        result.message = fmt::format("refused, but not for {}: {}", c.expect_rule, sentence);
}

/// No kernel takes the problem. That the architecture lacks the type, or the family, says nothing about a case that is about
/// something else.
void judge_no_kernel(CaseResult& result, const Case& c, const ProblemRefused& refusal,
                     const KernelSource& source, const std::string& arch) {
    const auto wanted = parse_reason(c.expect_rule);
    const bool named =
        c.expect_rule.empty() || (wanted && refusal.nearest() && *wanted == refusal.nearest()->reason);
    const bool family_absent = !source.has_family(family_of(c.family).stages(c).front());
    if ((family_absent || !source.has_type(c.data_type)) && !(c.expect == Expectation::no_kernel && named)) {
        result.outcome = Outcome::type_absent;
        result.refused_by = family_absent ? RefusedBy::kernels : RefusedBy::problem;
        result.refusal = family_absent ? "family" : "T-1";
        result.message =
            family_absent
                ? fmt::format("the list of {} has no kernels of family {}", arch, to_string(c.family))
                : fmt::format("T-1: {} has no kernels of type {}", arch, to_string(c.data_type));
        return;
    }
    result.refused_by = RefusedBy::kernels;
    if (refusal.nearest()) result.refusal = refusal.nearest()->field;
    judge_refusal(result, c, Expectation::no_kernel, named, refusal.what());
}

std::string describe(const Numerics& n) {
    return fmt::format(
        "u_o={:.3g} f_o={:.3g} u_p={:.3g} f_p={:.3g} u_m={:.3g} u_a={:.3g} eps_e={:.3g} eps_t={:.3g}{}{}",
        n.u_o, n.f_o, n.u_p, n.f_p, n.u_m, n.u_a, n.eps_e, n.eps_t, n.normalised_p ? " normalised P" : "",
        n.truncating ? " truncating" : "");
}

std::string describe(const Candidate& candidate) {
    std::string text;
    for (const StageKernel& stage : candidate.stages)
        text += (text.empty() ? "" : "; ") + describe(stage.numerics);
    return text;
}

/// The tile of a kernel along an axis of its outputs; 0 = it takes all of it. Backward's tiles are of queries and keys too.
std::int64_t tile_along(const std::string& axis, const Tile& tile) {
    if (axis == "query") return tile.m0;
    return axis == "key" ? tile.n0 : 0;
}

void set_tile(ErrorMap& map, const KernelConfig& config) {
    map.tile_rows = tile_along(map.row_axis, config.algorithm.tile);
    map.tile_columns = tile_along(map.column_axis, config.algorithm.tile);
}

/// The reference of a case, and how far its oracles are apart.
struct Oracles {
    CaseExpectation& expectation;
    double disagreement;
};

/// Fills in everything that the gates say about the outputs of all stages. Returns why the numbers cannot be believed either
/// way; empty when they can.
std::string judge_outputs(CaseResult& result, std::span<const KernelFamily> stages,
                          const StageOutputs& outputs, std::span<const StageKernel> kernels,
                          const Oracles& oracles, InputOrigin inputs) {
    std::string mistrust;
    if (oracles.disagreement > 1.0)
        mistrust = fmt::format("the two oracles are {:.3g} times their bound apart", oracles.disagreement);
    for (std::size_t n = 0; n < stages.size(); ++n) {
        StageVerdict verdict = oracles.expectation.judge(stages[n], outputs[n], kernels[n].numerics, inputs);
        Judgement& judgement = verdict.judgement;
        result.rows += verdict.rows;
        result.elements += judgement.elements;
        result.reference_seconds += verdict.reference_seconds;
        result.worst.insert(result.worst.end(), judgement.worst.begin(), judgement.worst.end());
        for (ErrorMap& map : judgement.maps) {
            if (kernels[n].instance != nullptr) set_tile(map, kernels[n].instance->config());
            result.maps.push_back(std::move(map));
        }
        if (!judgement.pattern.empty())
            result.pattern += (result.pattern.empty() ? "" : "; ") + judgement.pattern;
        std::ranges::move(judgement.gates, std::back_inserter(result.gates));
        if (mistrust.empty()) mistrust = verdict.mistrust;
    }
    // Those of a stage that is right would stand before those of a wrong one.
    keep_worst(result.worst);
    return mistrust;
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

/// Whether the kernel that the case expects to be planned is among these.
bool names_expected(const Case& c, const Candidate& candidate) {
    return std::ranges::any_of(candidate.stages, [&](const StageKernel& stage) {
        return catalog::glob_match(c.expect_kernel, stage.name);
    });
}

/// The tiles in which kernels run few rows of a large shape of a matrix; without rows when some stage of some candidate cannot leave the
/// others out.
RowTile tile_of_few_rows(const Case& c, const std::vector<Candidate>& candidates) {
    if (!c.sampled_rows || !is_of_matrix(c)) return {};
    RowTile tile{.rows = 1};
    for (const Candidate& candidate : candidates)
        for (const StageKernel& stage : candidate.stages) {
            if (stage.run_rows == nullptr) return {};
            tile.rows = std::lcm(tile.rows, stage.instance->config().algorithm.tile.m0);
            tile.heads = std::lcm(tile.heads, stage.tile_heads);
        }
    return tile;
}

/// A case whose kernels run one after another on the same inputs, judged by the same oracles.
struct PreparedCase {
    const Case& c;
    CaseTensors& tensors;
    const Oracles& oracles;
    const CaseRunOptions& options;
};

/// Does `step`; where the device is lost or has no memory left, `result` has its outcome. Returns whether it was neither.
template <class Step>
bool on_working_device(CaseResult& result, const Step& step) {
    try {
        step();
        return true;
    } catch (const DeviceLost& error) {
        result.outcome = Outcome::crashed;
        result.message = error.what();
    } catch (const DeviceOutOfMemory& error) {
        result.not_run_reason = NotRunReason::no_memory;
        result.message = error.what();
    }
    return false;
}

void run_candidate(CaseResult& result, const PreparedCase& prepared, const Candidate& candidate) {
    const auto& [c, tensors, oracles, options] = prepared;
    result.numerics = describe(candidate);
    if (!c.expect_kernel.empty() && !options.all_kernels && !names_expected(c, candidate)) {
        result.outcome = Outcome::failed;
        result.message = fmt::format("planned {}, expected {}", result.kernel, c.expect_kernel);
        return;
    }
    for (const StageKernel& stage : candidate.stages) {
        const KernelConfig& config = stage.instance->config();
        result.tiles.push_back({config.signature.family, config.algorithm.tile.m0, config.algorithm.tile.n0});
    }
    Execution execution(tensors.here(), tensors.elsewhere(), candidate, tensors.here().few_rows());
    const StageOutputs outputs = execution.first();
    const std::string mistrust =
        judge_outputs(result, candidate.families, outputs, candidate.stages, oracles, InputOrigin::fill);
    execution.repeat(outputs, launches_of(c, options));
    execution.in_parts(outputs);
    result.kernel_seconds = execution.kernel_seconds();
    std::ranges::move(execution.gates(), std::back_inserter(result.gates));
    conclude(result, mistrust);
}

/// `run_candidate`, with a target's exceptions turned into outcomes.
void judge_candidate(CaseResult& result, const PreparedCase& prepared, const Candidate& candidate) {
    try {
        on_working_device(result, [&] { run_candidate(result, prepared, candidate); });
    } catch (const std::bad_alloc&) {
        result.not_run_reason = NotRunReason::no_memory;
        result.message = end_of_exception().answer;
    } catch (const Error& error) {
        result.outcome = Outcome::failed;
        result.refused_by = RefusedBy::launch;
        result.message = fmt::format("the launch was refused: {}", error.what());
    }
}

/// The result of a candidate, without an outcome.
CaseResult of_candidate(const CaseResult& blank, const Case& c, const Candidate& candidate,
                        const CaseRunOptions& options) {
    CaseResult result = blank;
    result.kernel = candidate.name();
    result.chosen = candidate.chosen;
    result.reproduce = reproducing_command(c, options, candidate.chosen);
    return result;
}

/// The entry of --waivers because of which kernels (CaseResult::kernel) are not launched on a case; nullptr where there is none.
const Waiver* forbidden(const CaseRunOptions& options, const Case& c, const std::string& kernels) {
    return options.waivers == nullptr ? nullptr : options.waivers->forbids(c.id, kernels);
}

/// Takes the candidates that are not launched, because of --waivers or because a kernel is not built, out of `candidates`; their
/// results.
std::vector<CaseResult> set_aside(std::vector<Candidate>& candidates, const CaseResult& blank, const Case& c,
                                  const CaseRunOptions& options) {
    std::vector<CaseResult> results;
    std::erase_if(candidates, [&](const Candidate& candidate) {
        const Waiver* waiver = forbidden(options, c, candidate.name());
        if (waiver != nullptr)
            results.push_back(waived_result(of_candidate(blank, c, candidate, options), *waiver));
        return waiver != nullptr;
    });
    std::erase_if(candidates, [&](const Candidate& candidate) {
        const StageKernel* missing = candidate.not_built();
        if (missing == nullptr) return false;
        results.push_back(of_candidate(blank, c, candidate, options));
        results.back().not_run_reason = NotRunReason::not_built;
        results.back().message = missing->not_built;
        return true;
    });
    return results;
}

/// The kernels to run; nullopt when `result` has its outcome already, because there are none.
std::optional<std::vector<Candidate>> candidates_of(CaseResult& result, const Family& family, const Case& c,
                                                    const KernelSource& source,
                                                    const CaseRunOptions& options) {
    std::vector<Candidate> candidates;
    try {
        const Problem problem = to_problem(c, options.arch);
        if (c.expect == Expectation::invalid_problem) {
            result.outcome = Outcome::failed;
            result.message = fmt::format("the problem was accepted, {} was to refuse it", c.expect_rule);
            return std::nullopt;
        }
        const bool any_name = c.expect == Expectation::no_kernel;
        const bool works = on_working_device(result, [&] {
            if (options.all_kernels)
                candidates = all_candidates(source, family, c, problem,
                                            any_name ? std::string() : options.kernel_filter);
            else
                candidates = {planned_candidate(source, family, c, problem)};
        });
        if (!works) return std::nullopt;
    } catch (const ProblemError& error) {
        const bool named = c.expect_rule.empty() || error.rule() == c.expect_rule;
        result.refused_by = RefusedBy::problem;
        result.refusal = error.rule();
        judge_refusal(result, c, Expectation::invalid_problem, named, error.what());
        return std::nullopt;
    } catch (const ProblemRefused& error) {
        judge_no_kernel(result, c, error, source, options.arch);
        return std::nullopt;
    } catch (const UnsupportedInvocation& error) {
        result.not_run_reason = NotRunReason::target_cannot;
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
            fmt::format("a kernel was found, {}; the case expects none", candidates.front().name());
        return std::nullopt;
    }
    return candidates;
}

} // namespace

std::vector<Outputs> exchanged_outputs(const Case& c, CaseData& data) {
    std::vector<Outputs> stages;
    for (const KernelFamily stage : family_of(c.family).stages(c)) {
        Outputs outputs = data.outputs(stage);
        for (const TensorSpec& spec : data.tensors().specs())
            if (!spec.exchanged) outputs.remove(spec.name);
        stages.push_back(std::move(outputs));
    }
    return stages;
}

CaseResult judge_given_outputs(const Case& c, CaseData& data, const Numerics& numerics) {
    return judge_given_outputs(c, data, *data.expectation(0), numerics);
}

CaseResult judge_given_outputs(const Case& c, CaseData& data, CaseExpectation& expectation,
                               const Numerics& numerics, InputOrigin inputs, std::vector<GateVerdict> found) {
    const std::vector<KernelFamily> stages = family_of(c.family).stages(c);
    CaseResult result = blank_result(c);
    result.kernel = "given";
    StageKernel kernel;
    kernel.numerics = numerics;
    result.numerics = describe(numerics);
    const Oracles oracles{expectation, expectation.oracle_disagreement()};
    const std::string mistrust =
        judge_outputs(result, stages, exchanged_outputs(c, data),
                      std::vector<StageKernel>(stages.size(), kernel), oracles, inputs);
    std::ranges::move(found, std::back_inserter(result.gates));
    conclude(result, mistrust);
    return result;
}

CaseResult judge_run_outputs(const Case& c, CaseData& data, CaseExpectation& expectation,
                             const Candidate& candidate) {
    CaseResult result = blank_result(c);
    result.kernel = candidate.name();
    result.numerics = describe(candidate);
    const Oracles oracles{expectation, expectation.oracle_disagreement()};
    StageOutputs outputs;
    for (const KernelFamily stage : candidate.families) outputs.push_back(data.outputs(stage));
    conclude(result, judge_outputs(result, candidate.families, outputs, candidate.stages, oracles,
                                   InputOrigin::fill));
    return result;
}

std::vector<CaseResult> run_case(const Case& c, const KernelSource& source, const CaseRunOptions& options) {
    return run_case(family_of(c.family), c, source, options);
}

std::vector<CaseResult> run_case(const Family& family, const Case& given, const KernelSource& source,
                                 const CaseRunOptions& options) {
    const system::Stopwatch watch;
    const Case c = options.archs ? with_device_splits(given, options.arch, *options.archs) : given;
    CaseResult blank = blank_result(c);
    blank.reproduce = reproducing_command(c, options, "");
    const auto only_blank = [&] {
        blank.seconds = watch.seconds();
        return std::vector{blank};
    };

    if (const Waiver* waiver = forbidden(options, c, "")) return {waived_result(blank, *waiver)};
    auto candidates = candidates_of(blank, family, c, source, options);
    if (!candidates) return only_blank();
    std::vector<CaseResult> results = set_aside(*candidates, blank, c, options);
    if (candidates->empty()) return results;

    const Fp8Flavour flavour = fp8_flavour(options.arch);
    const RowTile tile = tile_of_few_rows(c, *candidates);
    if (exceeds_limit(blank, family, c, flavour, options, tile)) return only_blank();
    std::optional<CaseTensors> tensors;
    try {
        tensors.emplace(family, c, flavour, options, tile);
    } catch (const NoRoomForTensor& error) {
        blank.not_run_reason = NotRunReason::no_memory;
        blank.message = error.what();
        return only_blank();
    }
    const auto expectation = tensors->here().expectation(tensors->reference_threads());
    const system::Stopwatch agreement_watch;
    const Oracles oracles{*expectation, expectation->oracle_disagreement()};
    const double agreement_seconds = agreement_watch.seconds();

    for (const Candidate& candidate : *candidates) {
        const system::Stopwatch kernel_watch;
        CaseResult result = of_candidate(blank, c, candidate, options);
        judge_candidate(result, {c, *tensors, oracles, options}, candidate);
        result.reference_seconds += agreement_seconds;
        // Time spent for all of them is the first one's.
        result.seconds = &candidate == &candidates->front() ? watch.seconds() : kernel_watch.seconds();
        results.push_back(std::move(result));
    }
    return results;
}

} // namespace fmha::harness
