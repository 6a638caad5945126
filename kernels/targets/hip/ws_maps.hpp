#pragma once

#include "dispatcher/types/args.hpp"
#include "dispatcher/types/kernel_config.hpp"
#include "kernels/targets/hip/tensor_map.hpp"

#include <array>
#include <optional>

namespace fmha::hip_target {

/// The maps of a warp-specialised launch before they are encoded, as WsLaunch says.
struct WsMaps {
    std::array<TensorMapSpec, WsLaunch::maps_of_launch> specs;
    std::array<MapRows, WsLaunch::maps_of_launch> rows;
    std::optional<Unmappable> problem; ///< then nothing else counts
};

/// The maps of a launch of `config`, whose pipeline is `ws`. Reads no memory: lengths and tables may lie on a device.
WsMaps ws_maps_of(const KernelConfig& config, const FwdArgs& args);
WsMaps ws_maps_of(const KernelConfig& config, const PagedKvArgs& args);
WsMaps ws_maps_of(const KernelConfig& config, const BatchPrefillArgs& args);

} // namespace fmha::hip_target
