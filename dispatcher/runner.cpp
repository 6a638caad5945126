#include "dispatcher/runner.hpp"

#include "dispatcher/explain/explain.hpp"
#include "dispatcher/invocation.hpp"
#include "dispatcher/types/error.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <utility>

namespace fmha {
namespace {

/// For kernels that are done when their launch returns.
class HostClock final : public PassClock {
  public:
    void start() override { start_ = Clock::now(); }
    void stop() override { seconds_.push_back(std::chrono::duration<double>(Clock::now() - start_).count()); }
    std::vector<double> take_seconds() override { return std::exchange(seconds_, {}); }

  private:
    using Clock = std::chrono::steady_clock;
    Clock::time_point start_;
    std::vector<double> seconds_;
};

/// All stages of a plan go to one stream, so the clock of any that needs one serves all.
std::unique_ptr<PassClock> clock_of(const ExecutionPlan& plan, Stream stream) {
    for (const PlanStage& stage : plan.stages())
        if (auto clock = stage.kernel->instance->clock(stream)) return clock;
    return std::make_unique<HostClock>();
}

} // namespace

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

#define FMHA_RUN(name, Args, ...)                                                                            \
    RunResult Runner::run_##name(const Signature& traits, const Args& args, const ArchName& arch,            \
                                 Stream stream, const Prepare& prepare) const {                              \
        return run(problem_of(traits, args, arch), args, stream, prepare);                                   \
    }
FMHA_API_FAMILIES(FMHA_RUN)
#undef FMHA_RUN

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
    require_posed(plan.problem(), invocation);
    RunResult result;
    const std::unique_ptr<PassClock> clock = benchmarking_ ? clock_of(plan, stream) : nullptr;
    const int passes = benchmarking_ ? warmup_ + repeat_ : 1;
    for (int pass = 0; pass < passes; ++pass) {
        if (prepare) prepare(plan);
        const bool timed = benchmarking_ && pass >= warmup_;
        if (timed) clock->start();
        for (const PlanStage& stage : plan.stages()) stage.kernel->instance->launch(invocation, stream);
        if (timed) clock->stop();
    }
    result.launches = passes;
    if (benchmarking_) {
        std::vector<double> times = clock->take_seconds();
        std::sort(times.begin(), times.end());
        const std::size_t middle = times.size() / 2;
        const double median =
            times.size() % 2 == 1 ? times[middle] : 0.5 * (times[middle - 1] + times[middle]);
        result.median_ms = 1e3 * median;
        result.mean_ms =
            1e3 * std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
    }
    result.plan = std::move(plan);
    return result;
}

} // namespace fmha
