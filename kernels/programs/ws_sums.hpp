#pragma once

#include "dispatcher/types/enumerations.hpp"
#include "kernels/programs/device.hpp"

namespace fmha::kernels {

/// Whether a warp-specialised program adds the products of each tile of keys to the output itself. Products of e4m3 by warp groups keep 14
/// bits of a sum, which would not do for all keys of a row: one tile of them is a sum of its own (tolerances B.8).
FMHA_DEVICE constexpr bool adds_tiles_apart(DataType type) {
    return type == DataType::fp8 || type == DataType::fp8bf16 || type == DataType::fp8fp32;
}

} // namespace fmha::kernels
