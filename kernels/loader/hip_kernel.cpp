#include "kernels/loader/hip_kernel.hpp"

#include "kernels/targets/hip/block_plan.hpp"
#include "kernels/targets/launch.hpp"

#include <fmt/format.h>

#include <limits>

namespace fmha::loader {
namespace {

/// Threads and LDS of a launch. On AMD the compiler knows the LDS and reserves it.
LaunchShape shape_of(const KernelConfig& config, const DeviceRuntime& runtime) {
    const hip_target::BlockPlan plan = hip_target::plan_of(config);
    LaunchShape shape;
    shape.threads = static_cast<std::uint32_t>(plan.threads);
    if (runtime.platform() == "nvidia") shape.dynamic_lds = static_cast<std::uint32_t>(plan.lds_bytes);
    return shape;
}

} // namespace

HipKernel::HipKernel(const generator::BuiltKernel& kernel, const Device& device,
                     std::shared_ptr<const Module> module)
    : config_(kernel.config), name_("hip." + kernel.name), module_(std::move(module)),
      shape_(shape_of(config_, device.runtime())),
      function_(module_->function(kernel.symbol, shape_.dynamic_lds)) {}

void HipKernel::launch(const Invocation& invocation, Stream stream) const {
    targets::with_launch(config_, invocation, [&]<class Program>(Program, const auto& args) {
        const std::int64_t blocks = typename Program::Grid(config_, args).size();
        if (blocks == 0) return;
        if (blocks > std::numeric_limits<std::int32_t>::max())
            throw UnsupportedInvocation(fmt::format("the launch needs {} blocks; allowed: at most {}", blocks,
                                                    std::numeric_limits<std::int32_t>::max()));
        LaunchShape shape = shape_;
        shape.blocks = static_cast<std::uint32_t>(blocks);
        function_.launch(shape, &args, stream.handle);
    });
}

} // namespace fmha::loader
