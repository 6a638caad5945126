#pragma once

#include "dispatcher/dispatcher.hpp"
#include "dispatcher/types/family_table.hpp"

#include <functional>
#include <string_view>

namespace fmha {

/// The result of a run. Times are 0 unless benchmarking is on.
struct RunResult {
    ExecutionPlan plan;
    int launches = 0; ///< of each stage
    double median_ms = 0.0, mean_ms = 0.0;
};

/// Launches plans (dispatcher-api section 9). By default one launch of each stage and no clock; with benchmarking
/// on, warm-up launches and repeats around all stages. The time of a pass is that between two events of the stream for
/// kernels of a device, and the processor's for kernels of the host. The setters may not be called during a run; runs on
/// different streams may overlap if their workspaces and tensors do not.
class Runner {
  public:
    /// Called before every pass over the stages, so that repeats do not accumulate into the outputs of an earlier
    /// pass: clears accumulators, restores tensors that are updated in place.
    using Prepare = std::function<void(const ExecutionPlan&)>;

    explicit Runner(const Dispatcher& dispatcher) : dispatcher_(&dispatcher) {}

    /// Throws InputError for a negative warm-up or fewer than one repeat.
    void set_timing(int warmup, int repeat);
    void set_benchmarking(bool on) { benchmarking_ = on; }

    /// Plans and launches. Throws NoKernelFound with the explanation when the main stage has no kernel, PlanIncomplete
    /// when another stage has none, UnsupportedInvocation when a chosen kernel is registered but not built, the errors of
    /// `require_posed` for arguments that pose another problem than the plan's, and those of planning and of the instances.
    RunResult run(const Problem& problem, const Invocation& invocation, Stream stream,
                  const Prepare& prepare = {}) const;

    /// The same for the problem that traits and arguments pose (`problem_of`): run_fwd, run_fwd_pagedkv, run_fwd_splitkv,
    /// run_fwd_appendkv, run_batch_prefill and run_bwd.
#define FMHA_RUN(name, Args, ...)                                                                            \
    RunResult run_##name(const Signature& traits, const Args& args, const ArchName& arch, Stream stream,     \
                         const Prepare& prepare = {}) const;
    FMHA_API_FAMILIES(FMHA_RUN)
#undef FMHA_RUN

    /// Launches the kernel with this identifier for its own stage alone. Throws NoKernelFound for an identifier that
    /// is not registered and UnsupportedInvocation, with the condition, when it does not take the problem.
    RunResult run_explicit(std::string_view identifier, const Problem& problem, const Invocation& invocation,
                           Stream stream, const Prepare& prepare = {}) const;

  private:
    RunResult launch(ExecutionPlan plan, const Invocation& invocation, Stream stream,
                     const Prepare& prepare) const;

    const Dispatcher* dispatcher_;
    int warmup_ = 5, repeat_ = 10;
    bool benchmarking_ = false;
};

} // namespace fmha
