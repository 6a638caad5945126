#include "kernels/targets/hip/emulated/emulated_target.hpp"

#include "dispatcher/types/error.hpp"
#include "kernels/targets/hip/cannot_execute.hpp"
#include "kernels/targets/hip/emulated/team_executor.hpp"
#include "kernels/targets/launch.hpp"

#include <atomic>

namespace fmha::hip_target {
namespace {

class EmulatedKernel final : public KernelInstance {
  public:
    EmulatedKernel(const KernelConfig& config, int threads) : config_(config), threads_(threads) {}
    const KernelConfig& config() const override { return config_; }
    std::string name() const override { return "emulated." + identifier(config_); }
    void launch(const Invocation& invocation, Stream) const override {
        const unsigned launch = launches_++;
        emulate_kernel(config_, invocation,
                       {.threads = threads_,
                        .last_thread_first = launch % 2 == 1,
                        .schedule = static_cast<Schedule>(launch % schedules)});
    }

  private:
    KernelConfig config_;
    int threads_;
    mutable std::atomic<unsigned> launches_{0};
};

} // namespace

void emulate_kernel(const KernelConfig& config, const Invocation& invocation,
                    const EmulationOptions& options) {
    if (const auto reason = cannot_execute(config)) throw UnsupportedInvocation(*reason);
    targets::with_launch(
        config, invocation, targets::Elements::of,
        [&]<KernelFamily family, class Args>(kernels::Program<family> program, const Args& args) {
            if constexpr (kernels::HasTeams<Args>)
                if (config.algorithm.pipeline == Pipeline::ws) {
                    emulate_teams(config, args, options.threads, options.schedule,
                                  [](TeamBlock& block, MatrixUnit unit, const WsMaps& maps, int agent) {
                                      return EmulatedTeamMachine(block, unit, maps, agent);
                                  });
                    return;
                }
            if constexpr (PlannedFamily<family>) // nothing else gets here
                emulate_blocks(
                    program, config, args, options,
                    [&](MachineShape shape) {
                        shape.last_thread_first = options.last_thread_first;
                        return EmulatedMachine(shape);
                    },
                    [](EmulatedMachine& machine, const RunTimeOf<family>& setup) {
                        using Context =
                            typename FamilyContext<family>::template Type<EmulatedMachine, RunTimeOf<family>>;
                        return Context(machine, setup);
                    });
        });
}

std::shared_ptr<const KernelInstance> make_emulated_instance(const KernelConfig& config, int threads) {
    if (const auto reason = cannot_execute(config)) throw UnsupportedInvocation(*reason);
    return std::make_shared<EmulatedKernel>(config, threads);
}

} // namespace fmha::hip_target
