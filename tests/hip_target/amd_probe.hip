// Every operation of AMD's machine, one kernel each. `probes.h` comes from the test: a PROBE line per instruction.
#include "kernels/targets/hip/amd/machine.hpp"

#define FMHA_KERNEL extern "C" __attribute__((global)) void

namespace {

using namespace fmha;
using namespace fmha::hip_target;
using Machine = amd::Machine<128, 8192>;

/// Two products on neighbouring fragments, so that offsets are exercised.
template <MatrixInstruction name>
__attribute__((device)) inline void probe(std::uint32_t* p) {
    constexpr InstructionInfo info = instruction_info(name);
    constexpr int packed = 32 / element_bits(info.operand);
    constexpr int scales = info.scale_block != 0 ? 1 : 0;
    constexpr int a_words = info.a_elements / packed + scales, b_words = info.b_elements / packed + scales;
    constexpr int c_words = info.c_elements;
    Machine machine;
    Machine::Registers<std::uint32_t, 2 * a_words> a;
    Machine::Registers<std::uint32_t, 2 * b_words> b;
    Machine::Registers<float, 2 * c_words> c;
    machine.each([&](int t) {
        for (int i = 0; i < 2 * a_words; ++i) a.at(t, i) = p[t * 64 + i];
        for (int i = 0; i < 2 * b_words; ++i) b.at(t, i) = p[t * 64 + i + 128 * 64];
        for (int i = 0; i < 2 * c_words; ++i)
            c.at(t, i) = __builtin_bit_cast(float, p[t * 64 + i + 256 * 64]);
    });
#pragma unroll
    for (int i = 0; i < 2; ++i) machine.mma(name, c, i * c_words, a, i * a_words, b, i * b_words);
    machine.each([&](int t) {
        for (int i = 0; i < 2 * c_words; ++i)
            p[t * 64 + i] = __builtin_bit_cast(std::uint32_t, c.at(t, i));
    });
}

/// A product that begins, and another one behind it.
template <MatrixInstruction name, class M>
__attribute__((device)) inline void begin(M machine, std::uint32_t* p) {
    if constexpr (M::begins_products) {
        typename M::template Registers<std::uint32_t, 16> a, b;
        typename M::template Registers<float, 8> c;
        machine.each([&](int t) {
            for (int i = 0; i < 16; ++i) {
                a.at(t, i) = p[t * 32 + i];
                b.at(t, i) = p[t * 32 + 16 + i];
            }
            for (int i = 0; i < 8; ++i) c.at(t, i) = 0.0F;
        });
#pragma unroll
        for (int i = 0; i < 2; ++i) machine.mma(name, c, 0, a, i * 8, b, i * 8, i == 0);
        machine.each([&](int t) {
            for (int i = 0; i < 8; ++i) p[t * 32 + i] = __builtin_bit_cast(std::uint32_t, c.at(t, i));
        });
    }
}

template <int mask>
__attribute__((device)) inline void exchange(float* p) {
    Machine machine;
    Machine::Registers<float, 2> in, out;
    machine.each([&](int t) {
        for (int r = 0; r < 2; ++r) in.at(t, r) = p[2 * t + r];
    });
    machine.exchange(out, in, mask);
    machine.each([&](int t) {
        for (int r = 0; r < 2; ++r) p[2 * t + r] = out.at(t, r);
    });
}

template <int mask, class M>
__attribute__((device)) inline void trade(M machine, std::uint32_t* p) {
    if constexpr (requires(typename M::template Registers<std::uint32_t, 2> x) { machine.trade(x, 0, 1, mask); }) {
        typename M::template Registers<std::uint32_t, 2> x;
        machine.each([&](int t) {
            for (int r = 0; r < 2; ++r) x.at(t, r) = p[2 * t + r];
        });
        machine.trade(x, 0, 1, mask);
        machine.each([&](int t) {
            for (int r = 0; r < 2; ++r) p[2 * t + r] = x.at(t, r);
        });
    }
}

template <ElementType type>
__attribute__((device)) inline void pack(float* p) {
    Machine().each([&](int t) {
        reinterpret_cast<std::uint32_t*>(p)[t] = Machine::pack(p + 1024 + t * 8, type);
    });
}

template <ElementType type>
__attribute__((device)) inline void pack_results(float* p) {
    Machine().each([&](int t) {
        reinterpret_cast<std::uint32_t*>(p)[t] = Machine::pack_results(p + 1024 + t * 8, type);
    });
}

template <ElementType type>
__attribute__((device)) inline void pack_quotients(float* p) {
    Machine().each([&](int t) {
        reinterpret_cast<std::uint32_t*>(p)[t] =
            Machine::pack_quotients(p + 1024 + t * 8, type, type == ElementType::fp4 ? p[t] : 0x1p-7F);
    });
}

} // namespace

#define PROBE(name)                                                                                          \
    FMHA_KERNEL probe_##name(std::uint32_t* p) { probe<MatrixInstruction::name>(p); }
#include "probes.h"

FMHA_KERNEL begins_f16(std::uint32_t* p) { begin<MatrixInstruction::wmma_gfx11_16x16x16_f16>(Machine(), p); }
FMHA_KERNEL begins_bf16(std::uint32_t* p) { begin<MatrixInstruction::wmma_gfx11_16x16x16_bf16>(Machine(), p); }
FMHA_KERNEL exchange_16(float* p) { exchange<16>(p); }
FMHA_KERNEL exchange_half(float* p) { exchange<Machine::wave_size() / 2>(p); }
FMHA_KERNEL exchange_3(float* p) { exchange<3>(p); }
FMHA_KERNEL trade_16(std::uint32_t* p) { trade<16>(Machine(), p); }
FMHA_KERNEL trade_32(std::uint32_t* p) { trade<32>(Machine(), p); }

FMHA_KERNEL pack_fp16(float* p) { pack<ElementType::fp16>(p); }
FMHA_KERNEL pack_bf16(float* p) { pack<ElementType::bf16>(p); }
FMHA_KERNEL pack_results_bf16(float* p) { pack_results<ElementType::bf16>(p); }
FMHA_KERNEL pack_fp8_ocp(float* p) { pack<ElementType::fp8_ocp>(p); }
FMHA_KERNEL pack_fp8_fnuz(float* p) { pack<ElementType::fp8_fnuz>(p); }
FMHA_KERNEL pack_bf8_ocp(float* p) { pack<ElementType::bf8_ocp>(p); }
FMHA_KERNEL pack_bf8_fnuz(float* p) { pack<ElementType::bf8_fnuz>(p); }

#if defined(__gfx942__)
FMHA_KERNEL quotients_fp8(float* p) { pack_quotients<ElementType::fp8_fnuz>(p); }
FMHA_KERNEL quotients_bf8(float* p) { pack_quotients<ElementType::bf8_fnuz>(p); }
#elif defined(__gfx950__) || defined(__GFX12__)
FMHA_KERNEL quotients_fp8(float* p) { pack_quotients<ElementType::fp8_ocp>(p); }
FMHA_KERNEL quotients_bf8(float* p) { pack_quotients<ElementType::bf8_ocp>(p); }
#endif
#if defined(__gfx950__)
FMHA_KERNEL quotients_fp4(float* p) { pack_quotients<ElementType::fp4>(p); }
#endif

FMHA_KERNEL pack_fp4(float* p) { pack<ElementType::fp4>(p); }

FMHA_KERNEL math(float* p) {
    Machine().each([&](int t) { p[t] = Machine::exp2(p[t]) + Machine::log(p[t + 128]); });
}

FMHA_KERNEL lds(std::uint32_t* p) {
    Machine machine;
    machine.each([&](int t) {
        machine.lds_write<4>(t, t * 16, p + t * 4);
        machine.lds_write<2>(t, 2048 + t * 8, p + 1024 + t * 2);
        machine.lds_write<1>(t, 3072 + t * 4, p + 2048 + t);
    });
    machine.barrier();
    machine.each([&](int t) {
        const int at = t ^ 127;
        std::uint32_t words[4];
        machine.lds_read<4>(t, at * 16, words);
        for (int i = 0; i < 4; ++i) p[t * 4 + i] = words[i];
        machine.lds_read<2>(t, 2048 + at * 8, words);
        for (int i = 0; i < 2; ++i) p[1024 + t * 2 + i] = words[i];
        machine.lds_read<1>(t, 3072 + at * 4, words);
        p[2048 + t] = words[0] + machine.lds_read_byte(t, at * 3);
    });
}

FMHA_KERNEL global(const char* from, std::uint32_t* p, int lines) {
    Machine().each([&](int t) {
        Machine::global_read<4>(t, from, t * 16, t < lines, p + t * 4);
        Machine::global_read<2>(t, from, t * 8, t < lines, p + 1024 + t * 2);
        Machine::global_read<1>(t, from, t * 4, t < lines, p + 2048 + t);
        p[4096 + t] = Machine::global_read_byte(t, from, t, t < lines);
        p[t] = Machine::select_bytes(p[t], p[t + 1], 0x05040100U);
    });
}

/// Where there are such copies and reads; nothing elsewhere.
template <class M>
__attribute__((device)) inline void copies(M machine, const char* from, std::uint32_t* p, int lines) {
    if constexpr (M::has_step_copies) {
        machine.each([&](int t) {
            machine.template copy_async<1>(t, t * 4, from, t * 64, t < lines ? 4 : 0);
            const int place = machine.template copy_place<1>(1024);
            M::template copy_below<1>(t, place, 0, from, t * 64, lines, t < lines);
            M::template copy_below<1>(t, place, 1024, from, t * 64, 2 * lines, t < lines);
            if constexpr (M::has_lane_copies)
                M::template copy_from<1>(t, place, 2048, from + std::int64_t{t} * lines);
        });
        machine.commit_copies();
        machine.wait_single_copies(0);
        machine.barrier();
    }
    if constexpr (M::has_transposing_read) {
        machine.each([&](int t) {
            machine.template copy_async<4>(t, t * 16, from, t * 64, t < lines ? 16 : 0);
            M::template copy_from<4>(t, machine.template copy_place<4>(1024), 0,
                                     from + std::int64_t{t} * lines);
        });
        typename M::template Registers<std::uint32_t, 4> out;
        machine.read_transposed(out, 0, ElementType::bf16, [](int t) { return t * 8; });
        machine.read_transposed(out, 2, ElementType::fp8_ocp, [](int t) { return t * 8; });
        machine.each([&](int t) {
            for (int i = 0; i < 4; ++i) p[t * 4 + i] = out.at(t, i);
        });
    }
}

FMHA_KERNEL direct(const char* from, std::uint32_t* p, int lines) { copies(Machine(), from, p, lines); }

/// A number that is used before a loop and after it.
struct Numbers {
    float* to;
    float number;
};
FMHA_KERNEL kept(Numbers numbers) {
    Machine().each([&](int t) { numbers.to[t] = numbers.number; });
    Machine().each([&](int t) { numbers.to[t + 128] = numbers.number; });
}
FMHA_KERNEL reread(Numbers numbers) {
    Machine().each([&](int t) { numbers.to[t] = numbers.number; });
    const Numbers& again = Machine::reread(numbers);
    Machine().each([&](int t) { again.to[t + 128] = again.number; });
}
FMHA_KERNEL local(Numbers numbers) {
    Machine().each([&](int t) { numbers.to[t] = numbers.number * 3; });
    Machine().each([&](int t) { numbers.to[t + 128] = Machine::local(numbers.number) * 3; });
}
