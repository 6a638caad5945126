#pragma once

#include "dispatcher/types/enums.hpp"
#include "kernels/targets/hip/instruction.hpp"

#include <array>

/// Names of matrix instructions. Device code has no use for them and includes instruction.hpp alone.
template <>
struct fmha::EnumTable<fmha::hip_target::MatrixInstruction> {
    using enum hip_target::MatrixInstruction;
    static constexpr std::array<EnumName<hip_target::MatrixInstruction>, 34> names{
        {{none, "none"},
         {mfma_32x32x8_f16, "mfma_32x32x8_f16"},
         {mfma_16x16x16_f16, "mfma_16x16x16_f16"},
         {mfma_32x32x8_bf16, "mfma_32x32x8_bf16"},
         {mfma_16x16x16_bf16, "mfma_16x16x16_bf16"},
         {mfma_32x32x16_f16, "mfma_32x32x16_f16"},
         {mfma_16x16x32_f16, "mfma_16x16x32_f16"},
         {mfma_32x32x16_bf16, "mfma_32x32x16_bf16"},
         {mfma_16x16x32_bf16, "mfma_16x16x32_bf16"},
         {mfma_32x32x16_fp8, "mfma_32x32x16_fp8"},
         {mfma_16x16x32_fp8, "mfma_16x16x32_fp8"},
         {mfma_32x32x16_bf8, "mfma_32x32x16_bf8"},
         {mfma_16x16x32_bf8, "mfma_16x16x32_bf8"},
         {mfma_32x32x2_f32, "mfma_32x32x2_f32"},
         {mfma_16x16x4_f32, "mfma_16x16x4_f32"},
         {mfma_32x32x64_fp8, "mfma_32x32x64_fp8"},
         {mfma_32x32x64_bf8, "mfma_32x32x64_bf8"},
         {mfma_scale_32x32x64_fp8, "mfma_scale_32x32x64_fp8"},
         {mfma_scale_16x16x128_fp8, "mfma_scale_16x16x128_fp8"},
         {mfma_scale_32x32x64_fp4, "mfma_scale_32x32x64_fp4"},
         {mfma_scale_16x16x128_fp4, "mfma_scale_16x16x128_fp4"},
         {wmma_gfx11_16x16x16_f16, "wmma_gfx11_16x16x16_f16"},
         {wmma_gfx11_16x16x16_bf16, "wmma_gfx11_16x16x16_bf16"},
         {wmma_gfx12_16x16x16_f16, "wmma_gfx12_16x16x16_f16"},
         {wmma_gfx12_16x16x16_bf16, "wmma_gfx12_16x16x16_bf16"},
         {wmma_gfx12_16x16x16_fp8, "wmma_gfx12_16x16x16_fp8"},
         {wmma_gfx12_16x16x16_bf8, "wmma_gfx12_16x16x16_bf8"},
         {mma_16x8x16_f16, "mma_16x8x16_f16"},
         {mma_16x8x16_bf16, "mma_16x8x16_bf16"},
         {mma_16x8x8_f16, "mma_16x8x8_f16"},
         {mma_16x8x8_bf16, "mma_16x8x8_bf16"},
         {mma_16x8x8_tf32, "mma_16x8x8_tf32"},
         {mma_16x8x32_fp8, "mma_16x8x32_fp8"},
         {mma_16x8x32_bf8, "mma_16x8x32_bf8"}}};
    static constexpr auto& aliases = no_aliases<hip_target::MatrixInstruction>;
};
