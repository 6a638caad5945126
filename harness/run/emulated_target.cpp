#include "harness/run/emulated_target.hpp"

#include "dispatcher/system/parallel.hpp"
#include "harness/run/host_target.hpp"
#include "kernels/arch/usual_arch.hpp"
#include "kernels/targets/hip/cannot_execute.hpp"
#include "kernels/targets/hip/emulated/emulated_target.hpp"
#include "kernels/targets/hip/numerics.hpp"

namespace fmha::harness {
namespace {

class EmulatedTarget final : public Target {
  public:
    EmulatedTarget(std::string arch, arch::ArchSet archs, int threads)
        : arch_(std::move(arch)), archs_(std::move(archs)), threads_(threads) {}
    std::string_view name() const override { return "emulated"; }
    const std::string& arch() const override { return arch_; }
    arch::ArchSet archs() const override { return archs_; }
    std::string description() const override { return "emulated, lane by lane"; }
    std::string flags() const override { return " --target emulated"; }
    std::optional<std::string> cannot_execute(const KernelConfig& config) const override {
        return hip_target::cannot_execute(config);
    }
    /// The matrix model rounds every instruction's result once, which no hardware undercuts.
    StageKernel make(const KernelConfig& config) const override {
        return {{}, hip_target::make_emulated_instance(config, threads_), hip_target::numerics_of(config)};
    }
    double work_limit() const override { return hip_target::emulation_work_limit; }

  private:
    std::string arch_;
    arch::ArchSet archs_;
    int threads_; ///< of one kernel
};

} // namespace

std::shared_ptr<const Target> make_emulated_target(const TargetOptions& options) {
    refuse_device_options(options, "emulated");
    return std::make_shared<EmulatedTarget>(options.arch.empty() ? arch::usual_arch : options.arch,
                                            archs_of(options), system::threads_of_each(options.jobs));
}

} // namespace fmha::harness
