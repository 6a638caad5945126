#include "harness/bench/bench.hpp"

#include "dispatcher/system/parallel.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/field_json.hpp"
#include "dispatcher/types/fields.hpp"
#include "dispatcher/types/json.hpp"
#include "harness/cases/cache_case.hpp"
#include "harness/cases/case_problem.hpp"
#include "harness/families/family.hpp"
#include "harness/results/result_json.hpp"
#include "harness/run/candidate.hpp"
#include "harness/run/case_runner.hpp"
#include "harness/run/case_tensors.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace fmha::harness {
namespace {

constexpr std::int64_t fewest_launches = 5, most_launches = 10'000;

/// Launches until the clocks are up and code and tables are where they stay.
void warm_up(TimedKernel& kernel, const BenchOptions& options) {
    if (options.warm_up) {
        if (*options.warm_up > 0) kernel.time(*options.warm_up);
        return;
    }
    double spent = 0.0;
    for (int n = 0; n < 3 || (spent < 0.1 * options.seconds && n < 100); ++n) spent += kernel.time(1).front();
}

/// Of the parts [first, end).
std::vector<double> times_within(TimedKernel& kernel, std::size_t first, std::size_t end,
                                 const BenchOptions& options, double budget) {
    if (options.launches) return kernel.time_parts(first, end, *options.launches);
    std::vector<double> times = kernel.time_parts(first, end, fewest_launches);
    const double one = std::max(spread_of(times).median, 1e-9);
    const auto more = static_cast<std::int64_t>(std::min(budget / one, static_cast<double>(most_launches)));
    if (more > fewest_launches) {
        const auto rest = kernel.time_parts(first, end, more - fewest_launches);
        times.insert(times.end(), rest.begin(), rest.end());
    }
    return times;
}

/// Of the families that are timed, without the tensors between their stages.
constexpr auto work_of_call = []<class Args>(const Args& args) -> Work {
    if constexpr (requires { reference::attention_of(args); })
        return work_of(reference::attention_of(args));
    else if constexpr (requires { work_of(args); })
        return work_of(args);
    else
        return {};
};

/// Whether another launch starts from the outputs of the last one.
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

/// Each part on its own, and then all of them once more, because parts alone leave other outputs than a whole run.
std::vector<PartTime> times_of_parts(TimedKernel& kernel, const BenchOptions& options) {
    std::vector<PartTime> parts;
    const std::size_t count = kernel.parts().size();
    if (count < 2) return parts;
    for (std::size_t part = 0; part < count; ++part)
        parts.push_back(
            {kernel.parts()[part], spread_of(times_within(kernel, part, part + 1, options,
                                                          options.seconds / static_cast<double>(count)))});
    kernel.time(1);
    return parts;
}

double largest_error(const CaseResult& judged) {
    double largest = 0.0;
    for (const Deviation& one : judged.worst)
        if (const double error = std::abs(one.got - one.expected); !(error <= largest)) largest = error;
    return largest;
}

/// Judges, times and judges again. Leaves why the kernels are wrong in the row's message.
void measure(BenchRow& row, const Case& c, const Candidate& candidate, CaseData& data, TimingTarget& timing,
             const BenchOptions& options) {
    const auto expectation = data.expectation(0); // of inputs that no launch has updated
    const auto kernel = timing.prepare({candidate.stages, data.invocation(), data.tensors(), data.cleared()});
    row.places = kernel->places();
    kernel->time(1);
    kernel->fetch();
    const CaseResult judged = judge_run_outputs(c, data, *expectation, candidate);
    row.outcome = BenchOutcome::wrong;
    row.message = judged.message;
    row.max_error = largest_error(judged);
    if (judged.outcome != Outcome::passed) return;
    const std::vector<Outputs> first = outputs_of(data, candidate);
    warm_up(*kernel, options);
    const auto times = times_within(*kernel, 0, kernel->parts().size(), options, options.seconds);
    std::vector<PartTime> parts = times_of_parts(*kernel, options);
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

/// Leaves the kernels with the smallest head dimensions. The chosen kernel is that of some stage.
void keep_matching(std::vector<Candidate>& candidates) {
    const auto dims = [](const Candidate& candidate) {
        const auto found = std::ranges::find(candidate.stages, candidate.chosen, &StageKernel::name);
        if (found == candidate.stages.end() || !found->instance)
            return std::pair<std::int64_t, std::int64_t>();
        const Signature& s = found->instance->config().signature;
        return std::pair<std::int64_t, std::int64_t>(s.hdim_q, s.hdim_v);
    };
    std::optional<std::pair<std::int64_t, std::int64_t>> least;
    for (const Candidate& candidate : candidates)
        if (const auto own = dims(candidate); own.first > 0 && (!least || own < *least)) least = own;
    if (least)
        std::erase_if(candidates, [&](const Candidate& candidate) {
            const auto own = dims(candidate);
            return own.first > 0 && own != *least;
        });
}

Json pack(const Spread& time) {
    return {{"median", time.median},
            {"low", time.low},
            {"high", time.high},
            {"best", time.best},
            {"samples", time.samples}};
}

Spread unpack_spread(const Json& json) {
    return {json.at("median").get<double>(), json.at("low").get<double>(), json.at("high").get<double>(),
            json.at("samples").get<std::int64_t>(), json.at("best").get<double>()};
}

std::string_view word_of(BenchOutcome outcome) {
    switch (outcome) {
    case BenchOutcome::wrong:
        return "WRONG";
    case BenchOutcome::crashed:
        return "CRASHED";
    case BenchOutcome::timed_out:
        return "TIMED OUT";
    default:
        return "not run";
    }
}

std::string shared(double value, const Ceiling& ceiling) {
    return ceiling.known()
               ? fmt::format(" ({:.0f} % of {:.4g})", 100.0 * value / ceiling.value, ceiling.value)
               : std::string();
}

} // namespace

PlannedCase plan_case(const Case& c, const KernelSource& source, const std::string& arch,
                      const BenchOptions& options) {
    PlannedCase planned;
    BenchRow blank;
    blank.name = c.id;
    const auto refuse = [&](const std::string& reason) {
        blank.message = reason;
        planned.refused = blank;
        return planned;
    };
    try {
        const Family& family = family_of(c.family);
        const Problem problem = to_problem(c, arch);
        const std::vector<KernelFamily> stages = family.stages(c);
        if (c.backward.forward == ForwardResults::kernel)
            return refuse("a case in which forward's kernel runs before backward is not timed");
        if (appends(c))
            return refuse("a case in which append-KV's kernel runs before attention is not timed");
        Case sampled = c;
        sampled.sampled_rows = true;
        const CaseBytes bytes = family.bytes(sampled, fp8_flavour(arch), system::threads_of_each(1));
        if (const auto reason = beyond_limit(bytes, options.memory_limit); !reason.empty())
            return refuse(reason);
        planned.candidates = options.kernels == KernelChoice::planned
                                 ? std::vector{planned_candidate(source, family, c, problem)}
                                 : all_candidates(source, family, c, problem, options.kernel_filter);
        if (options.kernels == KernelChoice::matching) keep_matching(planned.candidates);
        if (planned.candidates.empty())
            return refuse(fmt::format("no accepting kernel has a name like {}", options.kernel_filter));
    } catch (const ProblemError& error) {
        return refuse(error.what());
    } catch (const NoKernelFound& error) {
        return refuse(error.what());
    } catch (const UnsupportedInvocation& error) {
        return refuse(error.what());
    }
    return planned;
}

CaseBench::CaseBench(const Case& c, const std::string& arch, TimingTarget& timing,
                     const BenchOptions& options)
    : c_(c), timing_(timing), options_(options) {
    c_.sampled_rows = true;
    data_ = family_of(c_.family).allocate(c_, fp8_flavour(arch));
    work_ = std::visit(work_of_call, data_->invocation());
}

BenchRow CaseBench::time(const Candidate& candidate) {
    BenchRow row;
    row.name = c_.id;
    row.work = work_;
    row.kernel = candidate.name();
    for (const StageKernel& stage : candidate.stages)
        if (stage.instance) row.kernels.push_back(stage.instance->config());
    if (const StageKernel* missing = candidate.not_built(); missing != nullptr) {
        row.message = missing->not_built;
        return row;
    }
    try {
        data_->prepare(row.kernels);
        // Outputs of the last kernels must not pass for those of these.
        data_->tensors().refill(Poison::nan);
        measure(row, c_, candidate, *data_, timing_, options_);
    } catch (const Error& error) {
        row.outcome = BenchOutcome::not_run;
        row.message = error.what();
    }
    return row;
}

std::string to_text(const BenchRow& row) {
    const std::string head =
        fmt::format("{}\n    {}\n", row.name, row.kernel.empty() ? "no kernel" : row.kernel);
    if (row.outcome != BenchOutcome::measured)
        return fmt::format("{}    {}: {}\n", head, word_of(row.outcome), row.message);
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

Json pack(const BenchRow& row) {
    const auto ceiling = [](const Ceiling& one) { return Json{{"value", one.value}, {"how", one.how}}; };
    Json kernels = Json::array(), parts = Json::array();
    for (const PartTime& part : row.parts)
        parts.push_back(Json{{"name", part.name}, {"time", pack(part.time)}});
    for (const KernelConfig& config : row.kernels) kernels.push_back(fields_to_json(config));
    return {{"case", row.name},
            {"kernel", row.kernel},
            {"round", row.round},
            {"outcome", to_string(row.outcome)},
            {"message", row.message},
            {"time", pack(row.time)},
            {"places", row.places},
            {"parts", std::move(parts)},
            {"max_error", row.max_error ? number_to_json(*row.max_error) : Json()},
            {"kernels", std::move(kernels)},
            {"visible_pairs", row.work.visible_pairs},
            {"flops", row.work.flops},
            {"bytes", row.work.bytes},
            {"matrix", ceiling(row.matrix)},
            {"copy", ceiling(row.copy)}};
}

BenchRow unpack_row(const Json& json) {
    const auto ceiling = [](const Json& one) {
        return Ceiling{one.at("value").get<double>(), one.at("how").get<std::string>()};
    };
    BenchRow row;
    row.name = json.at("case").get<std::string>();
    row.kernel = json.at("kernel").get<std::string>();
    row.round = json.at("round").get<std::int64_t>();
    const auto outcome = parse_enum<BenchOutcome>(json.at("outcome").get<std::string>());
    if (!outcome) throw InputError("a row of a benchmark has an unknown outcome");
    row.outcome = *outcome;
    row.message = json.at("message").get<std::string>();
    row.time = unpack_spread(json.at("time"));
    for (const Json& part : json.at("parts"))
        row.parts.push_back({part.at("name").get<std::string>(), unpack_spread(part.at("time"))});
    row.places = json.at("places").get<std::int64_t>();
    if (!json.at("max_error").is_null()) row.max_error = number_from_json(json.at("max_error"));
    for (const Json& config : json.at("kernels"))
        row.kernels.push_back(fields_from_json<KernelConfig>(config, "a row of a benchmark"));
    row.work = {json.at("visible_pairs").get<double>(), json.at("flops").get<double>(),
                json.at("bytes").get<double>()};
    row.matrix = ceiling(json.at("matrix"));
    row.copy = ceiling(json.at("copy"));
    return row;
}

} // namespace fmha::harness
