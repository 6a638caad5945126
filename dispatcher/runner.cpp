#include "dispatcher/runner.hpp"

#include "dispatcher/explain/explain.hpp"
#include "dispatcher/types/error.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>

namespace fmha {

void Runner::set_timing(int warmup, int repeat) {
    if (warmup < 0 || repeat < 1)
        throw InputError("timing needs warmup >= 0 and repeat >= 1, got " + std::to_string(warmup) + " and " +
                         std::to_string(repeat));
    warmup_ = warmup;
    repeat_ = repeat;
}

RunResult Runner::run(const Problem& problem, const Invocation& invocation, Stream stream,
                      const Prepare& prepare) const {
    ExecutionPlan plan = dispatcher_->plan(problem);
    if (!plan.valid()) {
        const std::string why = to_text(explain(*dispatcher_, problem));
        const auto missing = plan.missing();
        if (std::find(missing.begin(), missing.end(), main_stage(problem.api_family)) != missing.end())
            throw NoKernelFound(why);
        throw PlanIncomplete(why);
    }
    return launch(std::move(plan), invocation, stream, prepare);
}

RunResult Runner::run_explicit(std::string_view identifier, const Problem& problem,
                               const Invocation& invocation, Stream stream, const Prepare& prepare) const {
    ExecutionPlan plan = dispatcher_->plan_one(identifier, problem);
    return launch(std::move(plan), invocation, stream, prepare);
}

RunResult Runner::launch(ExecutionPlan plan, const Invocation& invocation, Stream stream,
                         const Prepare& prepare) const {
    for (const PlanStage& stage : plan.stages())
        if (stage.kernel->instance == nullptr)
            throw UnsupportedInvocation("kernel " + dispatcher_->registry().name_of(*stage.kernel) +
                                        " is registered but not built");
    RunResult result;
    std::vector<double> times;
    const int passes = benchmarking_ ? warmup_ + repeat_ : 1;
    for (int pass = 0; pass < passes; ++pass) {
        if (prepare) prepare(plan);
        const auto start = std::chrono::steady_clock::now();
        for (const PlanStage& stage : plan.stages()) stage.kernel->instance->launch(invocation, stream);
        const double ms =
            std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
        if (benchmarking_ && pass >= warmup_) times.push_back(ms);
    }
    result.launches = passes;
    if (!times.empty()) {
        std::sort(times.begin(), times.end());
        const std::size_t middle = times.size() / 2;
        result.median_ms = times.size() % 2 == 1 ? times[middle] : 0.5 * (times[middle - 1] + times[middle]);
        result.mean_ms = std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
    }
    result.plan = std::move(plan);
    return result;
}

} // namespace fmha
