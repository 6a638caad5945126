#include "kernels/generator/unit_rates.hpp"

#include "dispatcher/types/error.hpp"
#include "kernels/generator/scan.hpp"
#include "kernels/targets/hip/instruction.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>

namespace fmha::generator {
namespace {

using built::LoopUnit;

struct ArchRates {
    std::string_view arch;
    UnitRates rates;
};

constexpr UnitRates rdna(int matrix_flops) {
    return {.lanes = 32,
            .simds = 2,
            .vector = 1,
            .quarter = 4,
            .transcendental = 4,
            .own_transcendental = true,
            .scalar = 1,
            .branch = 4,
            .matrix_flops = matrix_flops,
            .shares_vector = true};
}

// Sources. Matrix rates: AMD's matrix instruction calculator (cycles of v_mfma and v_wmma), peak rates of the data sheets
// by compute units and clock, and LLVM's passes of four cycles (SISchedule.td, WriteNPassMAI), which agree: clang waits 16 passes for
// f8f6f4 of 32x32x64 where an operand has 8 bits and 8 elsewhere, which llvm-mca has for all. Vector, quarter and transcendental rates:
// "Instruction set architecture" manuals of CDNA 2, 3 and 4 and of RDNA 3 and 4; LLVM, SISchedule.td (WriteTrans32, WriteQuarterRate32); packed fp32 at the rate of
// single: CDNA 2 white paper; CDNA 4's transcendental functions at twice CDNA 3's rate are from secondary descriptions, its
// manual has no rate. LDS: 128 bytes a cycle and compute unit, 256 on CDNA 4 (white papers). Path from the second-level cache:
// 64 bytes a cycle and compute unit. Latencies: rounded, of the same order in published micro-benchmarks. sm_90: CUDA C++
// Programming Guide, table of arithmetic throughput; 512 dense fp16 multiply-adds a cycle and quarter are wgmma's, mma.sync has
// 0.62 of it as measured by `fmha bench` (631 of 989 TFLOP/s).
constexpr std::array table{
    ArchRates{"gfx90a", {.matrix_flops = 256}},
    ArchRates{"gfx942", {.matrix_flops = 512}},
    ArchRates{"gfx950", {.transcendental = 8, .matrix_flops = 1024, .lds_bytes = 256}},
    ArchRates{"gfx1100", rdna(256)},
    ArchRates{"gfx1151", rdna(256)},
    ArchRates{"gfx1201", rdna(512)},
    ArchRates{"sm_90",
              {.lanes = 32,
               .simds = 4,
               .vector = 1,
               .quarter = 2,
               .transcendental = 8,
               .own_transcendental = true,
               .scalar = 1,
               .branch = 2,
               .matrix_flops = 635,
               .lds_latency = 30}},
};

bool starts(std::string_view text, std::initializer_list<std::string_view> prefixes) {
    for (const auto prefix : prefixes)
        if (text.starts_with(prefix)) return true;
    return false;
}

/// "v_mfma_f32_32x32x8_bf16" and "v_wmma_f32_16x16x16_f16" have M, N and K in their names.
struct MatrixShape {
    std::int64_t m = 0, n = 0, k = 0;
};
std::optional<MatrixShape> matrix_shape(std::string_view mnemonic) {
    const auto x = mnemonic.find('x');
    if (x == std::string_view::npos) return std::nullopt;
    const auto begin = mnemonic.find_last_not_of("0123456789", x - 1) + 1;
    const auto m = leading_number(mnemonic.substr(begin));
    const auto second = mnemonic.substr(x + 1);
    const auto n = leading_number(second);
    const auto x2 = second.find('x');
    if (!m || !n || x2 == std::string_view::npos) return std::nullopt;
    const auto k = leading_number(second.substr(x2 + 1));
    if (!k) return std::nullopt;
    return MatrixShape{*m, *n, *k};
}

/// How many times as fast as with 16-bit operands, in halves.
int matrix_speed(std::string_view mnemonic, std::string_view operands, const MatrixShape& shape,
                 const ArchName& arch) {
    const std::string_view type = mnemonic.substr(mnemonic.rfind('x'));
    const bool cdna4 = arch.view() == "gfx950", rdna4 = arch.view() == "gfx1201";
    // gfx950's scaled instructions name the formats as operands: 4 is e2m1.
    if (type.find("f8f6f4") != std::string_view::npos)
        return operands.find("cbsz:4") != std::string_view::npos ? 8 : 4;
    if (type.find("fp8") != std::string_view::npos || type.find("bf8") != std::string_view::npos)
        return cdna4 ? 2 : rdna4 || arch.view() == "gfx942" ? 4 : 2;
    if (type.find("f16") != std::string_view::npos) { // bf16 too
        // CDNA 4 has CDNA 3's shapes at CDNA 3's speed; those of twice the depth take as long.
        const bool of_half_depth = cdna4 && shape.m * shape.k < 32 * 16;
        return of_half_depth ? 1 : 2;
    }
    return 0; // fp32: 64 multiplications and additions a cycle
}

InstructionCost matrix_cost(std::string_view mnemonic, std::string_view operands, const ArchName& arch,
                            const UnitRates& rates) {
    InstructionCost cost{.unit = LoopUnit::matrix};
    const auto shape = matrix_shape(mnemonic);
    if (!shape) throw InputError(fmt::format("the shape of {} is not known", mnemonic));
    cost.products = 2 * shape->m * shape->n * shape->k;
    const int speed = matrix_speed(mnemonic, operands, *shape, arch);
    constexpr int of_fp32 = 64;
    const int flops = speed == 0 ? of_fp32 : rates.matrix_flops * speed / 2;
    cost.cycles = static_cast<int>(cost.products / flops);
    cost.slots = rates.shares_vector ? cost.cycles : rates.vector;
    return cost;
}

/// Bytes of a lane that the end of a name stands for: "ds_read_b128", "ds_read2_b64", "buffer_load_dwordx4", "global_load_ushort".
int access_bytes(std::string_view mnemonic) {
    const int twice = mnemonic.find("read2") != std::string_view::npos ||
                              mnemonic.find("write2") != std::string_view::npos ||
                              mnemonic.find("_2addr") != std::string_view::npos
                          ? 2
                          : 1;
    if (mnemonic.find("dwordx4") != std::string_view::npos || mnemonic.find("b128") != std::string_view::npos)
        return 16 * twice;
    if (mnemonic.find("dwordx3") != std::string_view::npos || mnemonic.find("b96") != std::string_view::npos)
        return 12 * twice;
    if (mnemonic.find("dwordx2") != std::string_view::npos || mnemonic.find("b64") != std::string_view::npos)
        return 8 * twice;
    if (starts(mnemonic, {"ds_bpermute", "ds_permute", "ds_swizzle"})) return 4;
    for (const std::string_view narrow : {"byte", "_u8", "_i8", "_b8", "_d8"})
        if (mnemonic.find(narrow) != std::string_view::npos) return 1;
    for (const std::string_view narrow : {"short", "_u16", "_i16", "_b16", "_d16"})
        if (mnemonic.find(narrow) != std::string_view::npos) return 2;
    return 4 * twice;
}

int shared_cycles(int bytes, int bytes_a_cycle, const UnitRates& rates) {
    return (bytes * rates.lanes * rates.simds + bytes_a_cycle - 1) / bytes_a_cycle;
}

InstructionCost vector_cost(std::string_view mnemonic, const UnitRates& rates) {
    InstructionCost cost{.unit = LoopUnit::vector, .cycles = rates.vector};
    if (starts(mnemonic, {"v_exp_", "v_log_", "v_rcp_", "v_rsq_", "v_sqrt_", "v_sin_", "v_cos_"})) {
        cost.unit = LoopUnit::transcendental;
        cost.cycles = rates.transcendental;
        cost.slots = rates.own_transcendental ? rates.vector : rates.transcendental;
        return cost;
    }
    const bool of_64_bits = mnemonic.find("u64") != std::string_view::npos ||
                            mnemonic.find("i64") != std::string_view::npos ||
                            mnemonic.find("lshlrev_b64") != std::string_view::npos ||
                            mnemonic.find("_co_") != std::string_view::npos;
    const bool multiplies = starts(mnemonic, {"v_mul_lo_u32", "v_mul_hi_", "v_mad_u64", "v_mad_i64"});
    if (multiplies) cost.cycles = rates.quarter;
    cost.wide = of_64_bits;
    cost.move = starts(mnemonic, {"v_mov_b", "v_accvgpr_", "v_dual_mov_b32"});
    cost.select = mnemonic.find("v_cndmask") != std::string_view::npos ||
                  mnemonic.find("v_dual_cndmask") != std::string_view::npos;
    return cost;
}

InstructionCost amd_cost(std::string_view mnemonic, std::string_view operands, const ArchName& arch,
                         const UnitRates& rates) {
    if (starts(mnemonic, {"v_mfma_", "v_smfmac_", "v_wmma_", "v_swmmac_"}))
        return matrix_cost(mnemonic, operands, arch, rates);
    if (starts(mnemonic, {"ds_"})) {
        const int bytes = access_bytes(mnemonic);
        return {.unit = LoopUnit::lds,
                .cycles = shared_cycles(bytes, rates.lds_bytes, rates),
                .lds_bytes = bytes};
    }
    if (starts(mnemonic, {"buffer_", "global_", "flat_", "scratch_"})) {
        const int bytes = access_bytes(mnemonic);
        return {.unit = LoopUnit::memory,
                .cycles = shared_cycles(bytes, rates.memory_bytes, rates),
                .memory_bytes = bytes};
    }
    if (starts(mnemonic, {"v_"})) return vector_cost(mnemonic, rates);
    if (starts(mnemonic, {"s_cbranch", "s_branch"}))
        return {.unit = LoopUnit::branch, .cycles = rates.branch};
    if (mnemonic == "s_nop") {
        const auto states = leading_number(operands);
        return {.unit = LoopUnit::wait, .cycles = rates.scalar * static_cast<int>(1 + states.value_or(0))};
    }
    if (starts(mnemonic, {"s_waitcnt", "s_wait_", "s_barrier", "s_sleep", "s_delay_alu", "s_set", "s_sched"}))
        return {.unit = LoopUnit::wait, .cycles = mnemonic == "s_delay_alu" ? 0 : rates.scalar};
    return {.unit = LoopUnit::scalar, .cycles = rates.scalar};
}

/// "HMMA.16816.F32.BF16": M 16, N 8, K 16. Integer and memory instructions go through units of half a warp a cycle or less.
InstructionCost nvidia_cost(std::string_view mnemonic, const UnitRates& rates) {
    const auto name = mnemonic.substr(0, mnemonic.find('.'));
    if (name == "HMMA" || name == "QMMA" || name == "IMMA") {
        InstructionCost cost{.unit = LoopUnit::matrix, .slots = rates.vector};
        const auto shape = behind(mnemonic, ".", ".").value_or("");
        const auto digits = leading_number(shape);
        if (!digits) throw InputError(fmt::format("the shape of {} is not known", mnemonic));
        const std::int64_t k = *digits % 100 == 32 ? 32 : *digits % 100 == 16 ? 16 : *digits % 10;
        cost.products = std::int64_t{2} * 16 * 8 * k;
        const bool wide = mnemonic.find("TF32") != std::string_view::npos;
        const int flops =
            name == "HMMA" ? wide ? rates.matrix_flops / 2 : rates.matrix_flops : 2 * rates.matrix_flops;
        cost.cycles = static_cast<int>((cost.products + flops - 1) / flops);
        return cost;
    }
    const int bytes = mnemonic.find(".128") != std::string_view::npos   ? 16
                      : mnemonic.find(".64") != std::string_view::npos  ? 8
                      : mnemonic.find(".U8") != std::string_view::npos  ? 1
                      : mnemonic.find(".U16") != std::string_view::npos ? 2
                                                                        : 4;
    if (name == "LDSM") { // .M88.4: four matrices of 8 rows of 16 bytes
        const auto matrices = mnemonic.ends_with(".4") ? 4 : mnemonic.ends_with(".2") ? 2 : 1;
        return {.unit = LoopUnit::lds,
                .cycles = shared_cycles(4 * matrices, rates.lds_bytes, rates),
                .lds_bytes = 4 * matrices};
    }
    if (name == "LDS" || name == "STS" || name == "SHFL")
        return {.unit = LoopUnit::lds,
                .cycles = shared_cycles(bytes, rates.lds_bytes, rates),
                .lds_bytes = bytes};
    if (name == "LDG" || name == "STG" || name == "LDGSTS" || name == "LD" || name == "ST" || name == "LDL" ||
        name == "STL")
        return {.unit = LoopUnit::memory,
                .cycles = shared_cycles(bytes, rates.memory_bytes, rates),
                .memory_bytes = bytes};
    if (name == "MUFU")
        return {.unit = LoopUnit::transcendental, .cycles = rates.transcendental, .slots = rates.vector};
    if (name == "BRA" || name == "BSYNC" || name == "BSSY" || name == "EXIT" || name == "WARPSYNC")
        return {.unit = LoopUnit::branch, .cycles = rates.branch};
    if (name == "BAR" || name == "LDGDEPBAR" || name == "DEPBAR" || name == "NOP")
        return {.unit = LoopUnit::wait, .cycles = rates.scalar};
    if (name.starts_with('U') || name.starts_with("S2") || name == "R2UR" || name == "LDC")
        return {.unit = LoopUnit::scalar, .cycles = rates.scalar};
    InstructionCost cost{.unit = LoopUnit::vector, .cycles = rates.vector};
    // 32 lanes of fp32 a cycle, 16 of integers, conversions and selections by predicates of them.
    constexpr int half_rate = 2;
    const bool fp32 = name == "FFMA" || name == "FMUL" || name == "FADD";
    if (!fp32) cost.cycles = half_rate * rates.vector;
    cost.move = name == "MOV";
    cost.wide = mnemonic.find(".WIDE") != std::string_view::npos;
    cost.select = name == "FSEL" || name == "SEL";
    return cost;
}

} // namespace

bool is_nvidia(const ArchName& arch) {
    return hip_target::matrix_unit(arch) == hip_target::MatrixUnit::nvidia;
}

UnitRates rates_of(const ArchName& arch) {
    for (const ArchRates& row : table)
        if (row.arch == arch.view()) return row.rates;
    throw InputError(fmt::format("{}: the rates of its units are not known", arch.view()));
}

InstructionCost cost_of(std::string_view mnemonic, std::string_view operands, const ArchName& arch,
                        const UnitRates& rates) {
    return is_nvidia(arch) ? nvidia_cost(mnemonic, rates) : amd_cost(mnemonic, operands, arch, rates);
}

} // namespace fmha::generator
