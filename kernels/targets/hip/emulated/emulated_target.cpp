#include "kernels/targets/hip/emulated/emulated_target.hpp"

#include "dispatcher/types/error.hpp"
#include "kernels/targets/cannot_launch.hpp"
#include "kernels/targets/hip/cannot_execute.hpp"
#include "kernels/targets/hip/emulated/executor.hpp"

#include <atomic>
#include <fmt/format.h>

namespace fmha::hip_target {
namespace {

class EmulatedKernel final : public KernelInstance {
  public:
    EmulatedKernel(const KernelConfig& config, int threads) : config_(config), threads_(threads) {}
    const KernelConfig& config() const override { return config_; }
    std::string name() const override { return "emulated." + identifier(config_); }
    void launch(const Invocation& invocation, Stream) const override {
        const auto* args = std::get_if<FwdArgs>(&invocation);
        if (args == nullptr)
            throw ArgumentTypeError(fmt::format("kernel {} takes the arguments of family fwd", name()));
        emulate_fwd(config_, *args, {.threads = threads_, .last_thread_first = launches_++ % 2 == 1});
    }

  private:
    KernelConfig config_;
    int threads_;
    mutable std::atomic<unsigned> launches_{0};
};

} // namespace

EmulationError in_block(const EmulationError& error, const kernels::FwdItem& item) {
    return {error.hazard(), fmt::format("{} (block b={} h={} q_tile={} v_tile={})", error.what(), item.b,
                                        item.h, item.q_tile, item.v_tile)};
}

void emulate_fwd(const KernelConfig& config, const FwdArgs& args, const EmulationOptions& options) {
    if (const auto reason = cannot_execute(config)) throw UnsupportedInvocation(*reason);
    if (const auto reason = targets::cannot_launch(config, args)) throw UnsupportedInvocation(*reason);
    emulate_blocks(
        config, args, options,
        [&](MachineShape shape) {
            shape.last_thread_first = options.last_thread_first;
            return EmulatedMachine(shape);
        },
        [](EmulatedMachine& machine, const RunTime& setup) {
            return BlockContext<EmulatedMachine, RunTime>(machine, setup);
        });
}

std::shared_ptr<const KernelInstance> make_emulated_instance(const KernelConfig& config, int threads) {
    if (const auto reason = cannot_execute(config)) throw UnsupportedInvocation(*reason);
    return std::make_shared<EmulatedKernel>(config, threads);
}

} // namespace fmha::hip_target
