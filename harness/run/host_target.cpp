#include "harness/run/host_target.hpp"

#include "dispatcher/system/parallel.hpp"
#include "dispatcher/types/error.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "kernels/targets/host/numerics.hpp"

#include <fmt/format.h>

namespace fmha::harness {
namespace {

class HostTarget final : public Target {
  public:
    HostTarget(std::string arch, int threads) : arch_(std::move(arch)), threads_(threads) {}
    std::string_view name() const override { return "host"; }
    const std::string& arch() const override { return arch_; }
    std::optional<std::string> cannot_execute(const KernelConfig& config) const override {
        return host_target::cannot_execute(config);
    }
    StageKernel make(const KernelConfig& config) const override {
        return {{}, host_target::make_instance(config, threads_), host_target::numerics_of(config)};
    }

  private:
    std::string arch_;
    int threads_; ///< of one kernel
};

} // namespace

std::shared_ptr<const Target> make_host_target(const TargetOptions& options) {
    refuse_device_options(options, "host");
    return std::make_shared<HostTarget>(options.arch.empty() ? "gfx950" : options.arch,
                                        system::threads_of_each(options.jobs));
}

void refuse_device_options(const TargetOptions& options, std::string_view target) {
    if (!options.kernels_dir.empty())
        throw InputError(
            fmt::format("--kernels-dir {}: target {} builds no kernels; it goes with --target hip",
                        options.kernels_dir, target));
    if (options.device)
        throw InputError(fmt::format("--device {}: target {} has no devices; it goes with --target hip",
                                     *options.device, target));
}

} // namespace fmha::harness
