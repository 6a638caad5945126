#pragma once

#include "dispatcher/types/element_type.hpp"
#include "kernels/programs/device.hpp"
#include "kernels/targets/hip/descriptor.hpp"

#include <cstdint>

/// The warp-group products of sm_90a, one asm statement each: D (64 × N, fp32, N / 2 registers a thread) from operands of 16
/// bits, 16 deep, or of e4m3, 32 deep. An instruction names all of its registers, so there is a case for every N.
namespace fmha::hip_target::nvidia {

// NOLINTBEGIN(cppcoreguidelines-macro-usage): the text of an instruction and its operands are no expressions
#define FMHA_D0 "%0, %1, %2, %3, %4, %5, %6, %7"
#define FMHA_D1 "%8, %9, %10, %11, %12, %13, %14, %15"
#define FMHA_D2 "%16, %17, %18, %19, %20, %21, %22, %23"
#define FMHA_D3 "%24, %25, %26, %27, %28, %29, %30, %31"
#define FMHA_D4 "%32, %33, %34, %35, %36, %37, %38, %39"
#define FMHA_D5 "%40, %41, %42, %43, %44, %45, %46, %47"
#define FMHA_D6 "%48, %49, %50, %51, %52, %53, %54, %55"
#define FMHA_D7 "%56, %57, %58, %59, %60, %61, %62, %63"
#define FMHA_D8 "%64, %65, %66, %67, %68, %69, %70, %71"
#define FMHA_D9 "%72, %73, %74, %75, %76, %77, %78, %79"
#define FMHA_D10 "%80, %81, %82, %83, %84, %85, %86, %87"
#define FMHA_D11 "%88, %89, %90, %91, %92, %93, %94, %95"
#define FMHA_D12 "%96, %97, %98, %99, %100, %101, %102, %103"
#define FMHA_D13 "%104, %105, %106, %107, %108, %109, %110, %111"
#define FMHA_D14 "%112, %113, %114, %115, %116, %117, %118, %119"
#define FMHA_D15 "%120, %121, %122, %123, %124, %125, %126, %127"
#define FMHA_D_OPERANDS(d, g)                                                                                \
    "+f"((d)[8 * (g)]), "+f"((d)[8 * (g) + 1]), "+f"((d)[8 * (g) + 2]), "+f"((d)[8 * (g) + 3]),              \
        "+f"((d)[8 * (g) + 4]), "+f"((d)[8 * (g) + 5]), "+f"((d)[8 * (g) + 6]), "+f"((d)[8 * (g) + 7])
#define FMHA_TEXT_16 FMHA_D0
#define FMHA_OPERANDS_16(d) FMHA_D_OPERANDS(d, 0)
#define FMHA_TEXT_32 FMHA_D0 ", " FMHA_D1
#define FMHA_OPERANDS_32(d) FMHA_D_OPERANDS(d, 0), FMHA_D_OPERANDS(d, 1)
#define FMHA_TEXT_48 FMHA_D0 ", " FMHA_D1 ", " FMHA_D2
#define FMHA_OPERANDS_48(d) FMHA_D_OPERANDS(d, 0), FMHA_D_OPERANDS(d, 1), FMHA_D_OPERANDS(d, 2)
#define FMHA_TEXT_64 FMHA_D0 ", " FMHA_D1 ", " FMHA_D2 ", " FMHA_D3
#define FMHA_OPERANDS_64(d)                                                                                  \
    FMHA_D_OPERANDS(d, 0), FMHA_D_OPERANDS(d, 1), FMHA_D_OPERANDS(d, 2), FMHA_D_OPERANDS(d, 3)
#define FMHA_TEXT_80 FMHA_D0 ", " FMHA_D1 ", " FMHA_D2 ", " FMHA_D3 ", " FMHA_D4
#define FMHA_OPERANDS_80(d)                                                                                  \
    FMHA_D_OPERANDS(d, 0), FMHA_D_OPERANDS(d, 1), FMHA_D_OPERANDS(d, 2), FMHA_D_OPERANDS(d, 3),              \
        FMHA_D_OPERANDS(d, 4)
#define FMHA_TEXT_96 FMHA_D0 ", " FMHA_D1 ", " FMHA_D2 ", " FMHA_D3 ", " FMHA_D4 ", " FMHA_D5
#define FMHA_OPERANDS_96(d)                                                                                  \
    FMHA_D_OPERANDS(d, 0), FMHA_D_OPERANDS(d, 1), FMHA_D_OPERANDS(d, 2), FMHA_D_OPERANDS(d, 3),              \
        FMHA_D_OPERANDS(d, 4), FMHA_D_OPERANDS(d, 5)
#define FMHA_TEXT_112 FMHA_D0 ", " FMHA_D1 ", " FMHA_D2 ", " FMHA_D3 ", " FMHA_D4 ", " FMHA_D5 ", " FMHA_D6
#define FMHA_OPERANDS_112(d)                                                                                 \
    FMHA_D_OPERANDS(d, 0), FMHA_D_OPERANDS(d, 1), FMHA_D_OPERANDS(d, 2), FMHA_D_OPERANDS(d, 3),              \
        FMHA_D_OPERANDS(d, 4), FMHA_D_OPERANDS(d, 5), FMHA_D_OPERANDS(d, 6)
#define FMHA_TEXT_128                                                                                        \
    FMHA_D0 ", " FMHA_D1 ", " FMHA_D2 ", " FMHA_D3 ", " FMHA_D4 ", " FMHA_D5 ", " FMHA_D6 ", " FMHA_D7
#define FMHA_OPERANDS_128(d)                                                                                 \
    FMHA_D_OPERANDS(d, 0), FMHA_D_OPERANDS(d, 1), FMHA_D_OPERANDS(d, 2), FMHA_D_OPERANDS(d, 3),              \
        FMHA_D_OPERANDS(d, 4), FMHA_D_OPERANDS(d, 5), FMHA_D_OPERANDS(d, 6), FMHA_D_OPERANDS(d, 7)
#define FMHA_TEXT_144                                                                                        \
    FMHA_D0 ", " FMHA_D1 ", " FMHA_D2 ", " FMHA_D3 ", " FMHA_D4 ", " FMHA_D5 ", " FMHA_D6 ", " FMHA_D7       \
            ", " FMHA_D8
#define FMHA_OPERANDS_144(d)                                                                                 \
    FMHA_D_OPERANDS(d, 0), FMHA_D_OPERANDS(d, 1), FMHA_D_OPERANDS(d, 2), FMHA_D_OPERANDS(d, 3),              \
        FMHA_D_OPERANDS(d, 4), FMHA_D_OPERANDS(d, 5), FMHA_D_OPERANDS(d, 6), FMHA_D_OPERANDS(d, 7),          \
        FMHA_D_OPERANDS(d, 8)
#define FMHA_TEXT_160                                                                                        \
    FMHA_D0 ", " FMHA_D1 ", " FMHA_D2 ", " FMHA_D3 ", " FMHA_D4 ", " FMHA_D5 ", " FMHA_D6 ", " FMHA_D7       \
            ", " FMHA_D8 ", " FMHA_D9
#define FMHA_OPERANDS_160(d)                                                                                 \
    FMHA_D_OPERANDS(d, 0), FMHA_D_OPERANDS(d, 1), FMHA_D_OPERANDS(d, 2), FMHA_D_OPERANDS(d, 3),              \
        FMHA_D_OPERANDS(d, 4), FMHA_D_OPERANDS(d, 5), FMHA_D_OPERANDS(d, 6), FMHA_D_OPERANDS(d, 7),          \
        FMHA_D_OPERANDS(d, 8), FMHA_D_OPERANDS(d, 9)
#define FMHA_TEXT_176                                                                                        \
    FMHA_D0 ", " FMHA_D1 ", " FMHA_D2 ", " FMHA_D3 ", " FMHA_D4 ", " FMHA_D5 ", " FMHA_D6 ", " FMHA_D7       \
            ", " FMHA_D8 ", " FMHA_D9 ", " FMHA_D10
#define FMHA_OPERANDS_176(d)                                                                                 \
    FMHA_D_OPERANDS(d, 0), FMHA_D_OPERANDS(d, 1), FMHA_D_OPERANDS(d, 2), FMHA_D_OPERANDS(d, 3),              \
        FMHA_D_OPERANDS(d, 4), FMHA_D_OPERANDS(d, 5), FMHA_D_OPERANDS(d, 6), FMHA_D_OPERANDS(d, 7),          \
        FMHA_D_OPERANDS(d, 8), FMHA_D_OPERANDS(d, 9), FMHA_D_OPERANDS(d, 10)
#define FMHA_TEXT_192                                                                                        \
    FMHA_D0 ", " FMHA_D1 ", " FMHA_D2 ", " FMHA_D3 ", " FMHA_D4 ", " FMHA_D5 ", " FMHA_D6 ", " FMHA_D7       \
            ", " FMHA_D8 ", " FMHA_D9 ", " FMHA_D10 ", " FMHA_D11
#define FMHA_OPERANDS_192(d)                                                                                 \
    FMHA_D_OPERANDS(d, 0), FMHA_D_OPERANDS(d, 1), FMHA_D_OPERANDS(d, 2), FMHA_D_OPERANDS(d, 3),              \
        FMHA_D_OPERANDS(d, 4), FMHA_D_OPERANDS(d, 5), FMHA_D_OPERANDS(d, 6), FMHA_D_OPERANDS(d, 7),          \
        FMHA_D_OPERANDS(d, 8), FMHA_D_OPERANDS(d, 9), FMHA_D_OPERANDS(d, 10), FMHA_D_OPERANDS(d, 11)
#define FMHA_TEXT_208                                                                                        \
    FMHA_D0 ", " FMHA_D1 ", " FMHA_D2 ", " FMHA_D3 ", " FMHA_D4 ", " FMHA_D5 ", " FMHA_D6 ", " FMHA_D7       \
            ", " FMHA_D8 ", " FMHA_D9 ", " FMHA_D10 ", " FMHA_D11 ", " FMHA_D12
#define FMHA_OPERANDS_208(d)                                                                                 \
    FMHA_D_OPERANDS(d, 0), FMHA_D_OPERANDS(d, 1), FMHA_D_OPERANDS(d, 2), FMHA_D_OPERANDS(d, 3),              \
        FMHA_D_OPERANDS(d, 4), FMHA_D_OPERANDS(d, 5), FMHA_D_OPERANDS(d, 6), FMHA_D_OPERANDS(d, 7),          \
        FMHA_D_OPERANDS(d, 8), FMHA_D_OPERANDS(d, 9), FMHA_D_OPERANDS(d, 10), FMHA_D_OPERANDS(d, 11),        \
        FMHA_D_OPERANDS(d, 12)
#define FMHA_TEXT_224                                                                                        \
    FMHA_D0 ", " FMHA_D1 ", " FMHA_D2 ", " FMHA_D3 ", " FMHA_D4 ", " FMHA_D5 ", " FMHA_D6 ", " FMHA_D7       \
            ", " FMHA_D8 ", " FMHA_D9 ", " FMHA_D10 ", " FMHA_D11 ", " FMHA_D12 ", " FMHA_D13
#define FMHA_OPERANDS_224(d)                                                                                 \
    FMHA_D_OPERANDS(d, 0), FMHA_D_OPERANDS(d, 1), FMHA_D_OPERANDS(d, 2), FMHA_D_OPERANDS(d, 3),              \
        FMHA_D_OPERANDS(d, 4), FMHA_D_OPERANDS(d, 5), FMHA_D_OPERANDS(d, 6), FMHA_D_OPERANDS(d, 7),          \
        FMHA_D_OPERANDS(d, 8), FMHA_D_OPERANDS(d, 9), FMHA_D_OPERANDS(d, 10), FMHA_D_OPERANDS(d, 11),        \
        FMHA_D_OPERANDS(d, 12), FMHA_D_OPERANDS(d, 13)
#define FMHA_TEXT_240                                                                                        \
    FMHA_D0 ", " FMHA_D1 ", " FMHA_D2 ", " FMHA_D3 ", " FMHA_D4 ", " FMHA_D5 ", " FMHA_D6 ", " FMHA_D7       \
            ", " FMHA_D8 ", " FMHA_D9 ", " FMHA_D10 ", " FMHA_D11 ", " FMHA_D12 ", " FMHA_D13 ", " FMHA_D14
#define FMHA_OPERANDS_240(d)                                                                                 \
    FMHA_D_OPERANDS(d, 0), FMHA_D_OPERANDS(d, 1), FMHA_D_OPERANDS(d, 2), FMHA_D_OPERANDS(d, 3),              \
        FMHA_D_OPERANDS(d, 4), FMHA_D_OPERANDS(d, 5), FMHA_D_OPERANDS(d, 6), FMHA_D_OPERANDS(d, 7),          \
        FMHA_D_OPERANDS(d, 8), FMHA_D_OPERANDS(d, 9), FMHA_D_OPERANDS(d, 10), FMHA_D_OPERANDS(d, 11),        \
        FMHA_D_OPERANDS(d, 12), FMHA_D_OPERANDS(d, 13), FMHA_D_OPERANDS(d, 14)
#define FMHA_TEXT_256                                                                                        \
    FMHA_D0 ", " FMHA_D1 ", " FMHA_D2 ", " FMHA_D3 ", " FMHA_D4 ", " FMHA_D5 ", " FMHA_D6 ", " FMHA_D7       \
            ", " FMHA_D8 ", " FMHA_D9 ", " FMHA_D10 ", " FMHA_D11 ", " FMHA_D12 ", " FMHA_D13 ", " FMHA_D14  \
            ", " FMHA_D15
#define FMHA_OPERANDS_256(d)                                                                                 \
    FMHA_D_OPERANDS(d, 0), FMHA_D_OPERANDS(d, 1), FMHA_D_OPERANDS(d, 2), FMHA_D_OPERANDS(d, 3),              \
        FMHA_D_OPERANDS(d, 4), FMHA_D_OPERANDS(d, 5), FMHA_D_OPERANDS(d, 6), FMHA_D_OPERANDS(d, 7),          \
        FMHA_D_OPERANDS(d, 8), FMHA_D_OPERANDS(d, 9), FMHA_D_OPERANDS(d, 10), FMHA_D_OPERANDS(d, 11),        \
        FMHA_D_OPERANDS(d, 12), FMHA_D_OPERANDS(d, 13), FMHA_D_OPERANDS(d, 14), FMHA_D_OPERANDS(d, 15)
#define FMHA_FROM_LDS(N, type, A, B, P)                                                                      \
    asm volatile("{ .reg .pred p; setp.ne.b32 p, " P ", 0; wgmma.mma_async.sync.aligned.m64n" #N             \
                 "k16.f32." type "." type " {" FMHA_TEXT_##N "}, " A ", " B ", p, 1, 1, 0, 0; }"             \
                 : FMHA_OPERANDS_##N(d)                                                                      \
                 : "l"(a), "l"(b), "r"(accumulate))
#define FMHA_FROM_REGISTERS(N, type, A0, A1, A2, A3, B)                                                      \
    asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." type "." type " {" FMHA_TEXT_##N          \
                 "}, {" A0 ", " A1 ", " A2 ", " A3 "}, " B ", 1, 1, 1, 1;"                                   \
                 : FMHA_OPERANDS_##N(d)                                                                      \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
#define FMHA_CASE(N, R0, R1, R2, R3, R4)                                                                     \
    template <>                                                                                              \
    struct GroupProduct<N> {                                                                                 \
        FMHA_DEVICE static void from_lds(ElementType type, float* d, std::uint64_t a, std::uint64_t b,       \
                                         int accumulate) {                                                   \
            if (type == ElementType::fp16)                                                                   \
                FMHA_FROM_LDS(N, "f16", R0, R1, R2);                                                         \
            else                                                                                             \
                FMHA_FROM_LDS(N, "bf16", R0, R1, R2);                                                        \
        }                                                                                                    \
        FMHA_DEVICE static void from_registers(ElementType type, float* d, const std::uint32_t* a,           \
                                               std::uint64_t b) {                                            \
            if (type == ElementType::fp16)                                                                   \
                FMHA_FROM_REGISTERS(N, "f16", R0, R1, R2, R3, R4);                                           \
            else                                                                                             \
                FMHA_FROM_REGISTERS(N, "bf16", R0, R1, R2, R3, R4);                                          \
        }                                                                                                    \
    }

/// `from_lds`: D = A · Bᵀ, or D += with `accumulate`, both operands in lines of depth. `from_registers`: D += A · B, where a line of B is an
/// element of depth; A has the registers of mma.sync's m16n8k16.
template <int n>
struct GroupProduct;

FMHA_CASE(16, "%8", "%9", "%10", "%11", "%12");
FMHA_CASE(32, "%16", "%17", "%18", "%19", "%20");
FMHA_CASE(48, "%24", "%25", "%26", "%27", "%28");
FMHA_CASE(64, "%32", "%33", "%34", "%35", "%36");
FMHA_CASE(80, "%40", "%41", "%42", "%43", "%44");
FMHA_CASE(96, "%48", "%49", "%50", "%51", "%52");
FMHA_CASE(112, "%56", "%57", "%58", "%59", "%60");
FMHA_CASE(128, "%64", "%65", "%66", "%67", "%68");
FMHA_CASE(144, "%72", "%73", "%74", "%75", "%76");
FMHA_CASE(160, "%80", "%81", "%82", "%83", "%84");
FMHA_CASE(176, "%88", "%89", "%90", "%91", "%92");
FMHA_CASE(192, "%96", "%97", "%98", "%99", "%100");
FMHA_CASE(208, "%104", "%105", "%106", "%107", "%108");
FMHA_CASE(224, "%112", "%113", "%114", "%115", "%116");
FMHA_CASE(240, "%120", "%121", "%122", "%123", "%124");
FMHA_CASE(256, "%128", "%129", "%130", "%131", "%132");

#define FMHA_FROM_LDS_8(N, A, B, P)                                                                          \
    asm volatile("{ .reg .pred p; setp.ne.b32 p, " P ", 0; wgmma.mma_async.sync.aligned.m64n" #N             \
                 "k32.f32.e4m3.e4m3 {" FMHA_TEXT_##N "}, " A ", " B ", p, 1, 1; }"                           \
                 : FMHA_OPERANDS_##N(d)                                                                      \
                 : "l"(a), "l"(b), "r"(accumulate))
#define FMHA_FROM_REGISTERS_8(N, A0, A1, A2, A3, B, P)                                                       \
    asm volatile("{ .reg .pred p; setp.ne.b32 p, " P ", 0; wgmma.mma_async.sync.aligned.m64n" #N             \
                 "k32.f32.e4m3.e4m3 {" FMHA_TEXT_##N "}, {" A0 ", " A1 ", " A2 ", " A3 "}, " B               \
                                                     ", p, 1, 1; }"                                          \
                 : FMHA_OPERANDS_##N(d)                                                                      \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate))
#define FMHA_CASE_8(N, R0, R1, R2, R3, R4, R5)                                                               \
    template <>                                                                                              \
    struct GroupProduct8<N> {                                                                                \
        FMHA_DEVICE static void from_lds(Interleaved<N / 2> d, std::uint64_t a, std::uint64_t b,             \
                                         int accumulate) {                                                   \
            FMHA_FROM_LDS_8(N, R0, R1, R2);                                                                  \
        }                                                                                                    \
        FMHA_DEVICE static void from_registers(float* d, const std::uint32_t* a, std::uint64_t b,            \
                                               int accumulate) {                                             \
            FMHA_FROM_REGISTERS_8(N, R0, R1, R2, R3, R4, R5);                                                \
        }                                                                                                    \
    }

/// The registers of D in the order of an instruction whose right operand has its even lines first.
template <int count>
struct Interleaved {
    float* d;
    FMHA_DEVICE float& operator[](int operand) const { return d[interleaved_register(operand, count)]; }
};

/// The same of e4m3; A has the registers of mma.sync's m16n8k32. `from_lds`: B has its even lines first. `from_registers`: D = A · Bᵀ, or
/// D += with `accumulate`; B is in lines of depth, as all 8-bit operands are.
template <int n>
struct GroupProduct8;

FMHA_CASE_8(16, "%8", "%9", "%10", "%11", "%12", "%13");
FMHA_CASE_8(32, "%16", "%17", "%18", "%19", "%20", "%21");
FMHA_CASE_8(48, "%24", "%25", "%26", "%27", "%28", "%29");
FMHA_CASE_8(64, "%32", "%33", "%34", "%35", "%36", "%37");
FMHA_CASE_8(80, "%40", "%41", "%42", "%43", "%44", "%45");
FMHA_CASE_8(96, "%48", "%49", "%50", "%51", "%52", "%53");
FMHA_CASE_8(112, "%56", "%57", "%58", "%59", "%60", "%61");
FMHA_CASE_8(128, "%64", "%65", "%66", "%67", "%68", "%69");
FMHA_CASE_8(144, "%72", "%73", "%74", "%75", "%76", "%77");
FMHA_CASE_8(160, "%80", "%81", "%82", "%83", "%84", "%85");
FMHA_CASE_8(176, "%88", "%89", "%90", "%91", "%92", "%93");
FMHA_CASE_8(192, "%96", "%97", "%98", "%99", "%100", "%101");
FMHA_CASE_8(208, "%104", "%105", "%106", "%107", "%108", "%109");
FMHA_CASE_8(224, "%112", "%113", "%114", "%115", "%116", "%117");
FMHA_CASE_8(240, "%120", "%121", "%122", "%123", "%124", "%125");
FMHA_CASE_8(256, "%128", "%129", "%130", "%131", "%132", "%133");

#undef FMHA_CASE_8
#undef FMHA_FROM_REGISTERS_8
#undef FMHA_FROM_LDS_8
#undef FMHA_CASE
#undef FMHA_FROM_REGISTERS
#undef FMHA_FROM_LDS
#undef FMHA_D_OPERANDS
#undef FMHA_D0
#undef FMHA_D1
#undef FMHA_D2
#undef FMHA_D3
#undef FMHA_D4
#undef FMHA_D5
#undef FMHA_D6
#undef FMHA_D7
#undef FMHA_D8
#undef FMHA_D9
#undef FMHA_D10
#undef FMHA_D11
#undef FMHA_D12
#undef FMHA_D13
#undef FMHA_D14
#undef FMHA_D15
#undef FMHA_TEXT_16
#undef FMHA_TEXT_32
#undef FMHA_TEXT_48
#undef FMHA_TEXT_64
#undef FMHA_TEXT_80
#undef FMHA_TEXT_96
#undef FMHA_TEXT_112
#undef FMHA_TEXT_128
#undef FMHA_TEXT_144
#undef FMHA_TEXT_160
#undef FMHA_TEXT_176
#undef FMHA_TEXT_192
#undef FMHA_TEXT_208
#undef FMHA_TEXT_224
#undef FMHA_TEXT_240
#undef FMHA_TEXT_256
#undef FMHA_OPERANDS_16
#undef FMHA_OPERANDS_32
#undef FMHA_OPERANDS_48
#undef FMHA_OPERANDS_64
#undef FMHA_OPERANDS_80
#undef FMHA_OPERANDS_96
#undef FMHA_OPERANDS_112
#undef FMHA_OPERANDS_128
#undef FMHA_OPERANDS_144
#undef FMHA_OPERANDS_160
#undef FMHA_OPERANDS_176
#undef FMHA_OPERANDS_192
#undef FMHA_OPERANDS_208
#undef FMHA_OPERANDS_224
#undef FMHA_OPERANDS_240
#undef FMHA_OPERANDS_256
// NOLINTEND(cppcoreguidelines-macro-usage)

} // namespace fmha::hip_target::nvidia
