#include "kernels/loader/hip_kernel.hpp"

#include "dispatcher/types/family_traits.hpp"
#include "kernels/loader/event_clock.hpp"
#include "kernels/targets/hip/block_shape.hpp"
#include "kernels/targets/hip/ws_maps.hpp"
#include "kernels/targets/launch.hpp"

#include <fmt/format.h>

#include <vector>

namespace fmha::loader {
namespace {

/// Threads and LDS of a launch. On AMD the compiler knows the LDS and reserves it.
LaunchShape shape_of(const KernelConfig& config, const hip_target::BlockShape& plan,
                     const DeviceRuntime& runtime) {
    LaunchShape shape;
    shape.threads = static_cast<std::uint32_t>(plan.threads);
    if (runtime.platform() == "nvidia") {
        shape.dynamic_lds = static_cast<std::uint32_t>(plan.lds_bytes);
        // Blocks of a main stage that come while others are still there are spread unevenly, but those of ws are alone on a
        // multiprocessor; those of combining are small.
        shape.overlaps =
            config.arch.view() == "sm_90" &&
            (traits_of(config.signature.family).combines_splits || config.algorithm.pipeline == Pipeline::ws);
    }
    return shape;
}

/// The parameter of a warp-specialised kernel, of which a compute unit holds `resident` blocks. Throws UnsupportedInvocation for
/// tensors that have no map.
template <class Args>
hip_target::WsParameter<Args> ws_parameter(const KernelConfig& config, const Args& args, const Device& device,
                                           std::int64_t resident) {
    DeviceRuntime& runtime = device.runtime();
    const hip_target::WsMaps maps = hip_target::ws_maps_of(config, args);
    if (maps.problem) throw UnsupportedInvocation(hip_target::to_sentence(*maps.problem));
    hip_target::WsParameter<Args> parameter{{}, args};
    hip_target::WsLaunch& launch = parameter.launch;
    launch.grid =
        kernels::WsGrid(config, args).on(std::int64_t{device.properties().compute_units} * resident);
    for (std::size_t i = 0; i < maps.specs.size(); ++i) {
        launch.rows[i] = maps.rows[i];
        if (maps.specs[i].any())
            require(runtime, runtime.encode(maps.specs[i], launch.maps[i]),
                    fmt::format("encoding tensor map {} of {}", i, identifier(config)));
    }
    return parameter;
}

} // namespace

HipKernel::HipKernel(const built::BuiltKernel& kernel, const Device& device,
                     std::shared_ptr<const Module> module)
    : HipKernel(kernel, device, std::move(module), hip_target::block_shape(kernel.config)) {}

HipKernel::HipKernel(const built::BuiltKernel& kernel, const Device& device,
                     std::shared_ptr<const Module> module, const hip_target::BlockShape& plan)
    : config_(kernel.config), name_("hip." + kernel.name), device_(device), module_(std::move(module)),
      resident_(plan.blocks), shape_(shape_of(config_, plan, device.runtime())),
      function_(module_->function(kernel.symbol, shape_.dynamic_lds)) {}

targets::Elements HipKernel::elements(const Shape& shape, const LengthArrays& lengths, Stream stream) const {
    DeviceRuntime& runtime = device_.runtime();
    LengthArrays here = lengths;
    std::vector<std::vector<std::int32_t>> copies;
    const auto fetch = [&](const std::int32_t*& array, std::int64_t count) {
        if (array == nullptr) return;
        auto& copy = copies.emplace_back(static_cast<std::size_t>(count));
        require(runtime,
                runtime.copy(copy.data(), array, copy.size() * sizeof(std::int32_t), CopyKind::to_host,
                             stream.handle),
                "copying the lengths of the sequences from the device");
        array = copy.data();
    };
    fetch(here.seqstart_q, shape.batch + 1);
    fetch(here.seqstart_k, shape.batch + 1);
    fetch(here.seqlen_q, shape.batch);
    fetch(here.seqlen_k, shape.batch);
    fetch(here.cu_seqlen_q, shape.batch + 1);
    fetch(here.cu_seqlen_k, shape.batch + 1);
    if (!copies.empty()) wait_for(runtime, stream.handle);
    return targets::Elements::of(shape, here);
}

void HipKernel::launch(const Invocation& invocation, Stream stream) const {
    const auto in_memory = [&](const Shape& shape, const LengthArrays& lengths) {
        return elements(shape, lengths, stream);
    };
    targets::with_launch(config_, invocation, in_memory, [&]<class Program>(Program, const auto& args) {
        const std::int64_t blocks = typename Program::Grid(config_, args).size();
        if (blocks == 0) return;
        LaunchShape shape = shape_;
        shape.blocks = static_cast<std::uint32_t>(blocks);
        if constexpr (kernels::HasTeams<typename Program::Args>)
            if (config_.algorithm.pipeline == Pipeline::ws) {
                const auto parameter = ws_parameter(config_, args, device_, resident_);
                shape.blocks = parameter.launch.grid.blocks;
                function_.launch(shape, &parameter, stream.handle);
                return;
            }
        function_.launch(shape, &args, stream.handle);
    });
}

std::unique_ptr<PassClock> HipKernel::clock(Stream stream) const {
    return std::make_unique<EventClock>(device_, stream);
}

} // namespace fmha::loader
