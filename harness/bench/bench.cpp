#include "harness/bench/bench.hpp"

#include "dispatcher/types/error.hpp"
#include "dispatcher/types/json.hpp"
#include "harness/cases/case_problem.hpp"
#include "harness/families/family.hpp"
#include "harness/run/candidate.hpp"
#include "harness/run/case_runner.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace fmha::harness {
namespace {

constexpr std::int64_t fewest_launches = 5, most_launches = 10'000;

/// Launches until the clocks are up and code and tables are where they stay.
void warm_up(TimedKernel& kernel, double budget) {
    double spent = 0.0;
    for (int n = 0; n < 3 || (spent < 0.1 * budget && n < 100); ++n) spent += kernel.time(1).front();
}

/// Of the parts [first, end).
std::vector<double> times_within(TimedKernel& kernel, std::size_t first, std::size_t end, double budget) {
    std::vector<double> times = kernel.time_parts(first, end, fewest_launches);
    const double one = std::max(spread_of(times).median, 1e-9);
    const auto more = static_cast<std::int64_t>(std::min(budget / one, static_cast<double>(most_launches)));
    if (more > fewest_launches) {
        const auto rest = kernel.time_parts(first, end, more - fewest_launches);
        times.insert(times.end(), rest.begin(), rest.end());
    }
    return times;
}

/// Of the families that are timed, without what passes between their stages.
constexpr auto work_of_call = []<class Args>(const Args& args) -> Work {
    if constexpr (requires { reference::attention_of(args); })
        return work_of(reference::attention_of(args));
    else if constexpr (requires { work_of(args); })
        return work_of(args);
    else
        return {};
};

/// Whether another launch starts from what the last one left.
bool updates_inputs(const TensorSet& tensors) {
    return std::ranges::any_of(tensors.specs(),
                               [](const TensorSpec& spec) { return spec.flow == Flow::in_out && spec.fill; });
}

std::vector<Outputs> outputs_of(CaseData& data, const Candidate& candidate) {
    std::vector<Outputs> outputs;
    for (const KernelFamily stage : candidate.families) {
        Outputs written = data.outputs(stage);
        for (const TensorSpec& spec : data.tensors().specs())
            if (!data.repeats(stage, spec.name)) written.remove(spec.name);
        outputs.push_back(std::move(written));
    }
    return outputs;
}

/// Whether every launch of the kernels promises the same bits.
bool repeats(CaseData& data, const Candidate& candidate) {
    return std::ranges::all_of(candidate.families, [&](KernelFamily stage) {
        return std::ranges::all_of(data.tensors().specs(),
                                   [&](const TensorSpec& spec) { return data.repeats(stage, spec.name); });
    });
}

/// Each part on its own, and then all of them once more, because parts alone leave what a whole run does not.
std::vector<PartTime> times_of_parts(TimedKernel& kernel, double budget) {
    std::vector<PartTime> parts;
    const std::size_t count = kernel.parts().size();
    if (count < 2) return parts;
    for (std::size_t part = 0; part < count; ++part)
        parts.push_back({kernel.parts()[part], spread_of(times_within(kernel, part, part + 1,
                                                                      budget / static_cast<double>(count)))});
    kernel.time(1);
    return parts;
}

/// Judges, times and judges again. Leaves why the kernels are wrong in the row's message.
void measure(BenchRow& row, const Case& c, const Candidate& candidate, CaseData& data, TimingTarget& timing,
             double budget) {
    const auto expectation = data.expectation(0); // of inputs that no launch has updated
    const auto kernel = timing.prepare({candidate.stages, data.invocation(), data.tensors(), data.cleared()});
    row.places = kernel->places();
    kernel->time(1);
    kernel->fetch();
    const CaseResult judged = judge_run_outputs(c, data, *expectation, candidate);
    row.outcome = BenchOutcome::wrong;
    row.message = judged.message;
    if (judged.outcome != Outcome::passed) return;
    const std::vector<Outputs> first = outputs_of(data, candidate);
    warm_up(*kernel, budget);
    const auto times = times_within(*kernel, 0, kernel->parts().size(), budget);
    std::vector<PartTime> parts = times_of_parts(*kernel, budget);
    if (updates_inputs(data.tensors())) {
        data.tensors().refill(Poison::nan);
        kernel->restore();
        kernel->time(1);
    }
    kernel->fetch();
    const std::vector<Outputs> last = outputs_of(data, candidate);
    for (std::size_t n = 0; n < first.size(); ++n)
        if (const auto difference = first[n].first_difference(last[n]); !difference.empty()) {
            row.message = "the outputs changed while it was timed: " + difference;
            return;
        }
    if (!repeats(data, candidate)) {
        const CaseResult again = judge_run_outputs(c, data, *expectation, candidate);
        row.message = again.message;
        if (again.outcome != Outcome::passed) return;
    }
    row.outcome = BenchOutcome::measured;
    row.time = spread_of(times);
    row.parts = std::move(parts);
    row.matrix = timing.matrix_ceiling(c.data_type);
    row.copy = timing.copy_ceiling();
}

std::string shared(double value, const Ceiling& ceiling) {
    return ceiling.known()
               ? fmt::format(" ({:.0f} % of {:.4g})", 100.0 * value / ceiling.value, ceiling.value)
               : std::string();
}

} // namespace

std::vector<BenchRow> bench_case(const Case& c, const KernelSource& source, TimingTarget& timing,
                                 const BenchOptions& options) {
    Case sampled = c;
    sampled.sampled_rows = true;
    BenchRow blank;
    blank.name = c.id;
    const auto refused = [&](const Error& error) {
        blank.message = error.what();
        return std::vector{blank};
    };
    if (c.family == ApiFamily::bwd && c.backward.forward == ForwardResults::kernel) {
        blank.message = "a case in which forward's kernel runs before backward is not timed";
        return {blank};
    }
    const Family& family = family_of(c.family);
    std::vector<Candidate> candidates;
    try {
        const Problem problem = to_problem(c, timing.target()->arch());
        const std::vector<KernelFamily> stages = family.stages(c);
        candidates = options.all_kernels ? all_candidates(source, problem, stages, options.kernel_filter)
                                         : std::vector{planned_candidate(source, problem, stages)};
    } catch (const ProblemError& error) {
        return refused(error);
    } catch (const NoKernelFound& error) {
        return refused(error);
    } catch (const UnsupportedInvocation& error) {
        return refused(error);
    }
    const auto data = family.allocate(sampled, fp8_flavour(timing.target()->arch()));
    blank.work = std::visit(work_of_call, data->invocation());
    std::vector<BenchRow> rows;
    for (const Candidate& candidate : candidates) {
        BenchRow row = blank;
        row.kernel = candidate.name();
        if (const StageKernel* missing = candidate.not_built(); missing != nullptr) {
            row.message = missing->not_built;
            rows.push_back(std::move(row));
            continue;
        }
        std::vector<KernelConfig> kernels;
        for (const StageKernel& stage : candidate.stages) kernels.push_back(stage.instance->config());
        try {
            data->prepare(kernels);
            // Outputs of the last kernels must not pass for those of these.
            data->tensors().refill(Poison::nan);
            measure(row, sampled, candidate, *data, timing, options.seconds);
        } catch (const Error& error) {
            row.outcome = BenchOutcome::not_run;
            row.message = error.what();
        }
        rows.push_back(std::move(row));
    }
    return rows;
}

std::string to_text(const BenchRow& row) {
    const std::string head =
        fmt::format("{}\n    {}\n", row.name, row.kernel.empty() ? "no kernel" : row.kernel);
    if (row.outcome != BenchOutcome::measured)
        return fmt::format("{}    {}: {}\n", head, row.outcome == BenchOutcome::wrong ? "WRONG" : "not run",
                           row.message);
    constexpr double tera = 1e12, giga = 1e9, milli = 1e-3;
    const auto in = [](const Ceiling& ceiling, double unit) {
        return Ceiling{ceiling.value / unit, ceiling.how};
    };
    const double tflops = row.flops_per_second() / tera, gbytes = row.bytes_per_second() / giga;
    std::string parts;
    for (const PartTime& part : row.parts)
        parts += fmt::format("        {:<24}{:.4g} ms ({:.4g} to {:.4g})\n", part.name,
                             part.time.median / milli, part.time.low / milli, part.time.high / milli);
    return fmt::format(
        "{}    {:.4g} ms ({:.4g} to {:.4g}, {} launches in {} places)   {:.4g} TFLOP/s{}   {:.4g} "
        "GB/s{}\n{}",
        head, row.time.median / milli, row.time.low / milli, row.time.high / milli, row.time.samples,
        row.places, tflops, shared(tflops, in(row.matrix, tera)), gbytes, shared(gbytes, in(row.copy, giga)),
        parts);
}

Json to_json(const BenchRow& row) {
    Json json{{"case", row.name},
              {"kernel", row.kernel},
              {"round", row.round},
              {"outcome", to_string(row.outcome)},
              {"message", row.message}};
    if (row.outcome != BenchOutcome::measured) return json;
    json["seconds"] = row.time.median;
    json["seconds_low"] = row.time.low;
    json["seconds_high"] = row.time.high;
    json["seconds_best"] = row.time.best;
    json["launches"] = row.time.samples;
    json["places"] = row.places;
    json["visible_pairs"] = row.work.visible_pairs;
    json["flops"] = row.work.flops;
    json["bytes"] = row.work.bytes;
    json["flops_per_second"] = row.flops_per_second();
    json["bytes_per_second"] = row.bytes_per_second();
    if (!row.parts.empty()) json["parts"] = Json::array();
    for (const PartTime& part : row.parts)
        json["parts"].push_back({{"name", part.name},
                                 {"seconds", part.time.median},
                                 {"seconds_low", part.time.low},
                                 {"seconds_high", part.time.high},
                                 {"launches", part.time.samples}});
    const auto add_ceiling = [&](const char* name, double value, const Ceiling& ceiling) {
        json[name] = {{"value", ceiling.value}, {"how", ceiling.how}};
        if (ceiling.known()) json[name]["share"] = value / ceiling.value;
    };
    add_ceiling("matrix_ceiling", row.flops_per_second(), row.matrix);
    add_ceiling("copy_ceiling", row.bytes_per_second(), row.copy);
    return json;
}

} // namespace fmha::harness
