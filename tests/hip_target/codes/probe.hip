// Conversions between fp32 and the narrow formats, one kernel a format: every code decoded, every value encoded, in
// each way that a device has.
#include "dispatcher/types/element.hpp"
#include "kernels/programs/formats.hpp"
#include "tests/hip_target/codes/probe_args.hpp"
#if defined(__HIP__)
#include "kernels/targets/hip/amd/machine.hpp"
#else
#include "kernels/targets/hip/nvidia/machine.hpp"
#endif

namespace {

using namespace fmha;
using namespace fmha::hip_target::test;
using enum ElementType;

#if defined(__HIP__)

using Machine = hip_target::amd::Machine<probe_threads, 1024>;

__attribute__((device)) inline std::int64_t thread_of_grid() {
    return static_cast<std::int64_t>(__builtin_amdgcn_workgroup_id_x()) * probe_threads +
           __builtin_amdgcn_workitem_id_x();
}

template <ElementType type>
__attribute__((device)) inline float decode_by_instruction(std::uint32_t code) {
    if constexpr (type == fp16)
        return static_cast<float>(__builtin_bit_cast(_Float16, static_cast<std::uint16_t>(code)));
    else if constexpr (type == bf16)
        return static_cast<float>(__builtin_bit_cast(__bf16, static_cast<std::uint16_t>(code)));
    else if constexpr (type == fp4)
        return __builtin_amdgcn_cvt_scalef32_pk_f32_fp4(code, 1.0F, 0)[0];
    else if constexpr (type == fp8_ocp || type == fp8_fnuz)
        return __builtin_amdgcn_cvt_f32_fp8(static_cast<int>(code), 0);
    else
        return __builtin_amdgcn_cvt_f32_bf8(static_cast<int>(code), 0);
}

template <ElementType type>
__attribute__((device)) inline std::uint32_t encode_by_instruction(float x) {
    if constexpr (type == fp16)
        return __builtin_bit_cast(std::uint16_t, static_cast<_Float16>(x));
    else if constexpr (type == bf16)
        return __builtin_bit_cast(std::uint16_t, static_cast<__bf16>(x));
    else if constexpr (type == fp4)
        return __builtin_amdgcn_cvt_scalef32_pk_fp4_f32(0U, x, x, 1.0F, 0) & 0xFU;
    else if constexpr (type == fp8_ocp || type == fp8_fnuz)
        return static_cast<std::uint32_t>(__builtin_amdgcn_cvt_pk_fp8_f32(x, x, 0, false)) & 0xFFU;
    else
        return static_cast<std::uint32_t>(__builtin_amdgcn_cvt_pk_bf8_f32(x, x, 0, false)) & 0xFFU;
}

#else

using Machine = hip_target::nvidia::Machine<probe_threads>;

__device__ inline std::int64_t thread_of_grid() {
    return static_cast<std::int64_t>(blockIdx.x) * probe_threads + threadIdx.x;
}

template <ElementType type>
__device__ inline float decode_by_instruction(std::uint32_t code) {
    const auto pair = static_cast<std::uint16_t>(code); // 8 bits: of the code and of zero
    float value;
    if constexpr (type == bf16) {
        asm("cvt.f32.bf16 %0, %1;" : "=f"(value) : "h"(pair));
    } else if constexpr (type == fp16) {
        asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(pair));
    } else {
        std::uint32_t halves;
        if constexpr (type == fp8_ocp)
            asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(pair));
        else
            asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(halves) : "h"(pair));
        asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(static_cast<std::uint16_t>(halves)));
    }
    return value;
}

template <ElementType type>
__device__ inline std::uint32_t encode_by_instruction(float x) {
    std::uint16_t code;
    if constexpr (type == fp16) asm("cvt.rn.f16.f32 %0, %1;" : "=h"(code) : "f"(x));
    if constexpr (type == bf16) asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(code) : "f"(x));
    if constexpr (type == fp8_ocp) asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %1;" : "=h"(code) : "f"(x));
    if constexpr (type == bf8_ocp) asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %1;" : "=h"(code) : "f"(x));
    return element_bits(type) == 8 ? code & 0xFFU : code;
}

#endif

template <ElementType type>
__attribute__((device)) inline void probe(const ProbeArgs& args) {
    constexpr auto instruction = static_cast<int>(Way::instruction), program = static_cast<int>(Way::program),
                   machine = static_cast<int>(Way::machine), quotient = static_cast<int>(Way::quotient);
    const std::int64_t i = thread_of_grid();
    if (i < args.code_count) {
        const auto code = static_cast<std::uint32_t>(i);
        args.decoded[instruction][i] = decode_by_instruction<type>(code);
        args.decoded[program][i] = kernels::decode(code, kernels::format_of(type));
        args.decoded[machine][i] = args.decoded[quotient][i] = Machine().unpack(code, type);
    }
    if (i < args.value_count) {
        constexpr int packed = 32 / element_bits(type);
        const float x = args.values[i];
        constexpr float divisor = 4.0F;
        float same[packed], multiple[packed];
        for (int n = 0; n < packed; ++n) {
            same[n] = x;
            multiple[n] = divisor * x;
        }
        args.encoded[instruction][i] = encode_by_instruction<type>(x);
        args.encoded[program][i] = kernels::encode(x, type);
        // Every element of the word should have the same code; where they differ, the word is handed out, which is none.
        const auto code_of = [](std::uint32_t word) {
            const std::uint32_t first =
                word & (0xFFFFFFFFU >> static_cast<unsigned>(32 - element_bits(type)));
            const std::uint32_t all = first * (packed == 2   ? 0x00010001U
                                               : packed == 4 ? 0x01010101U
                                                             : 0x11111111U);
            return word == all ? first : word;
        };
        args.encoded[machine][i] = code_of(Machine().pack(same, type));
        const auto quotient_of = [&]<class Divides>(const Divides& divides) {
            // Four times the largest of a wider type are infinite.
            if constexpr (Divides::packs_quotients && element_bits(type) < 16)
                return code_of(divides.pack_quotients(multiple, type, divisor));
            else
                return args.encoded[machine][i];
        };
        args.encoded[quotient][i] = quotient_of(Machine());
    }
}

} // namespace

#define PROBE(type)                                                                                          \
    extern "C" __attribute__((global)) void codes_##type(const ProbeArgs args) {                             \
        probe<type>(args);                                                                                   \
    }

PROBE(fp16)
PROBE(bf16)
#if defined(__CUDACC__) && !defined(__HIP__) || defined(__gfx950__) || defined(__GFX12__)
PROBE(fp8_ocp)
PROBE(bf8_ocp)
#elif defined(__gfx942__)
PROBE(fp8_fnuz)
PROBE(bf8_fnuz)
#endif
#if defined(__gfx950__)
PROBE(fp4)
#endif
