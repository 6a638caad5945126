#pragma once

#include "kernels/targets/hip/instruction.hpp"

#if defined(__HIP__)
#include "kernels/targets/hip/amd/machine.hpp"
#elif defined(__CUDACC__)
#include "kernels/targets/hip/nvidia/machine.hpp"
#endif

#include <cstdint>

/// A kernel that does nothing but multiply registers: the speed of the matrix units when nothing else is in the way.
namespace fmha::hip_target {

/// Its only parameter.
struct MatrixLoopArgs {
    float* out = nullptr; ///< one element a thread, so that the products are needed
    std::int32_t repeats = 0;
};

inline constexpr int matrix_loop_threads = 256;

/// Independent sums that a wave has under way: enough to hide the latency of each.
FMHA_DEVICE constexpr int matrix_loop_sums(const InstructionInfo& info) {
    return info.c_elements >= 16 ? 4 : 64 / info.c_elements;
}

/// Of one wave in one launch.
constexpr double matrix_loop_flops(const InstructionInfo& info, std::int32_t repeats) {
    return 2.0 * info.m * info.n * info.k * matrix_loop_sums(info) * repeats;
}

#if defined(__HIP__) || defined(__CUDACC__)

template <MatrixInstruction name>
struct MatrixLoop {
    static constexpr InstructionInfo info = instruction_info(name);
    static constexpr int sums = matrix_loop_sums(info), per_sum = info.c_elements;
    static constexpr int a_words = info.a_elements * element_bits(info.operand) / 32;
    static constexpr int b_words = info.b_elements * element_bits(info.operand) / 32;
    static constexpr int scales = info.scale_block != 0 ? 1 : 0; ///< registers behind an operand's words
    static constexpr int a_fragment = a_words + scales, b_fragment = b_words + scales;
#if defined(__HIP__)
    using Machine = amd::Machine<matrix_loop_threads, 16>;
#else
    using Machine = nvidia::Machine<matrix_loop_threads>;
#endif

    /// Operands of either sign with magnitudes in [1, 2): all bits of the multipliers switch, as they do for real data.
    FMHA_DEVICE static std::uint32_t operand(std::uint32_t number) {
        const std::uint32_t bits = (number + 1) * 2654435761U ^ number << 13U;
        switch (info.operand) {
        case ElementType::fp32:
            return 0x3F800000U | (bits & 0x807FFFFFU);
        case ElementType::fp16:
            return 0x3C003C00U | (bits & 0x83FF83FFU);
        case ElementType::bf16:
            return 0x3F803F80U | (bits & 0x807F807FU);
        default:
            return 0x38383838U | (bits & 0x83838383U);
        }
    }

    static constexpr std::uint32_t scale_of_one = 127; ///< e8m0

    __attribute__((device)) static void run(const MatrixLoopArgs& args, std::uint32_t block) {
        Machine machine;
        typename Machine::template Registers<float, sums * per_sum> c;
        typename Machine::template Registers<std::uint32_t, 2 * a_fragment> a;
        typename Machine::template Registers<std::uint32_t, 2 * b_fragment> b;
        machine.each([&](int thread) {
            FMHA_UNROLL
            for (int r = 0; r < sums * per_sum; ++r) c.at(thread, r) = 0.0F;
            FMHA_UNROLL
            for (int r = 0; r < 2 * a_fragment; ++r)
                a.at(thread, r) = r % a_fragment < a_words
                                      ? operand(static_cast<std::uint32_t>(thread * 64 + r))
                                      : scale_of_one;
            FMHA_UNROLL
            for (int r = 0; r < 2 * b_fragment; ++r)
                b.at(thread, r) = r % b_fragment < b_words
                                      ? operand(static_cast<std::uint32_t>(thread * 64 + 32 + r))
                                      : scale_of_one;
        });
        FMHA_NO_UNROLL
        for (std::int32_t n = 0; n < args.repeats; ++n) {
            FMHA_UNROLL
            for (int i = 0; i < sums; ++i)
                machine.mma(name, c, i * per_sum, a, i % 2 * a_fragment, b, i / 2 % 2 * b_fragment);
        }
        machine.each([&](int thread) {
            float total = 0.0F;
            FMHA_UNROLL
            for (int r = 0; r < sums * per_sum; ++r) total += c.at(thread, r);
            args.out[block * matrix_loop_threads + static_cast<std::uint32_t>(thread)] = total;
        });
    }
};

#endif

} // namespace fmha::hip_target

#if defined(__HIP__)
#define FMHA_MATRIX_LOOP(symbol, name)                                                                       \
    extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(                           \
        fmha::hip_target::matrix_loop_threads, fmha::hip_target::matrix_loop_threads))) void                 \
    symbol(const fmha::hip_target::MatrixLoopArgs args) {                                                    \
        fmha::hip_target::MatrixLoop<fmha::hip_target::MatrixInstruction::name>::run(                        \
            args, __builtin_amdgcn_workgroup_id_x());                                                        \
    }
#elif defined(__CUDACC__)
#define FMHA_MATRIX_LOOP(symbol, name)                                                                       \
    extern "C" __global__ void __launch_bounds__(fmha::hip_target::matrix_loop_threads)                      \
        symbol(const fmha::hip_target::MatrixLoopArgs args) {                                                \
        fmha::hip_target::MatrixLoop<fmha::hip_target::MatrixInstruction::name>::run(args, blockIdx.x);      \
    }
#endif
