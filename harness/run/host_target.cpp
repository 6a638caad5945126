#include "harness/run/host_target.hpp"

#include "dispatcher/system/parallel.hpp"
#include "dispatcher/types/error.hpp"
#include "kernels/arch/usual_arch.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "kernels/targets/host/numerics.hpp"
#include "kernels/targets/host/row_tiles.hpp"

#include <fmt/format.h>

#include <vector>

namespace fmha::harness {
namespace {

class HostTarget final : public Target {
  public:
    HostTarget(std::string arch, arch::ArchSet archs, int threads)
        : arch_(std::move(arch)), archs_(std::move(archs)), threads_(threads) {}
    std::string_view name() const override { return "host"; }
    const std::string& arch() const override { return arch_; }
    arch::ArchSet archs() const override { return archs_; }
    std::optional<std::string> cannot_execute(const KernelConfig& config) const override {
        return host_target::cannot_execute(config);
    }
    bool runs_row_tiles() const override { return true; }
    StageKernel make(const KernelConfig& config) const override {
        StageKernel kernel{
            {}, host_target::make_instance(config, threads_), host_target::numerics_of(config)};
        if (host_target::has_row_tiles(config)) {
            kernel.tile_heads = host_target::most_heads_of_row_tile(config);
            kernel.run_rows = [config, threads = threads_](const Invocation& invocation,
                                                           std::span<const reference::RowId> rows) {
                std::vector<host_target::QueryRow> wanted;
                for (const reference::RowId& row : rows) wanted.push_back({row.b, row.h, row.i});
                host_target::run_row_tiles(config, invocation, wanted, threads);
            };
        }
        return kernel;
    }

  private:
    std::string arch_;
    arch::ArchSet archs_;
    int threads_; ///< of one kernel
};

} // namespace

std::shared_ptr<const Target> make_host_target(const TargetOptions& options) {
    refuse_device_options(options, "host");
    return std::make_shared<HostTarget>(options.arch.empty() ? arch::usual_arch : options.arch,
                                        archs_of(options), system::threads_of_each(options.jobs));
}

void refuse_device_options(const TargetOptions& options, std::string_view target) {
    if (!options.kernels_dir.empty())
        throw InputError(
            fmt::format("--kernels-dir {}: target {} builds no kernels; it goes with --target hip",
                        options.kernels_dir, target));
    if (!options.devices.empty())
        throw InputError(fmt::format("--devices {}: target {} has no devices; it goes with --target hip",
                                     options.devices, target));
    if (options.device)
        throw InputError(fmt::format("--device {}: target {} has no devices; it goes with --target hip",
                                     *options.device, target));
}

} // namespace fmha::harness
