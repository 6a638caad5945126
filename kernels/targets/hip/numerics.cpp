#include "kernels/targets/hip/numerics.hpp"

#include "kernels/programs/ws_sums.hpp"
#include "kernels/targets/hip/instruction.hpp"
#include "kernels/targets/with_program.hpp"

#include <algorithm>

namespace fmha::hip_target {

Numerics numerics_of(const KernelConfig& config) {
    if (!targets::has_products(config.signature.family)) return targets::row_numerics(config);
    Numerics out = targets::storage_numerics(config);
    const MatrixUnit unit = matrix_unit(config.arch);
    const DataType type = config.signature.data_type;
    // fp8 on Hopper too where kernels multiply by mma.sync, which the compiler makes of 16-bit instructions. The unit of 8 bits,
    // which keeps fewer bits of a sum, is that of wgmma (tests: Accumulation).
    const bool amd_fp32 = type == DataType::fp32 && unit != MatrixUnit::nvidia;
    if (!amd_fp32 && unit != MatrixUnit::cdna2) {
        out.u_a = 0x1p-23;
        out.truncating = true;
    }
    const Tile& tile = config.algorithm.tile;
    if (config.algorithm.pipeline == Pipeline::ws && kernels::adds_tiles_apart(type)) {
        out.u_a = 0x1p-13;
        out.promotion_interval = std::max<std::int64_t>(tile.n0, tile.k0max);
    }
    if (type == DataType::fp32 && unit == MatrixUnit::nvidia) out.u_m = out.u_p = 0x1p-11;
    // bf16's smallest normal number is where the exponential ends anyway.
    if (type == DataType::fp16 && unit == MatrixUnit::cdna2) out.f_p = 0x1p-14;
    return out;
}

} // namespace fmha::hip_target
