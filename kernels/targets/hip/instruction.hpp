#pragma once

#include "dispatcher/types/element_type.hpp"
#include "dispatcher/types/kernel_values.hpp"
#include "kernels/programs/device.hpp"

#include <cstdint>
#include <string_view>

/// The matrix-instruction table: the shapes and types of each instruction, and which lane and register hold which
/// element. Everything that lays out fragments, reads operands or models an instruction reads it from here.
/// Sources: AMD's instruction set manuals of CDNA 2, 3, 4 and RDNA 3, 4; NVIDIA's PTX manual (mma.sync). AMD's public
/// matrix-instruction calculator agrees about CDNA 2, CDNA 3, RDNA 3 and RDNA 4 but for numberings of rows (wmma_gfx11) and of k (wmma_gfx12). It
/// does not know CDNA 4, whose rows stand on the manual alone.
/// A sum over k does not depend on how k is numbered, as long as A and B number it alike and no block of k has a scale of
/// its own: a row may renumber the k of both.
namespace fmha::hip_target {

/// The matrix unit of an architecture. Generations that differ in shapes or types are different entries.
enum class MatrixUnit : std::uint8_t { none, cdna2, cdna3, cdna4, rdna3, rdna4, nvidia };

/// The matrix unit of an architecture by its name (`gfx942`, `gfx1151`, `sm_90`).
constexpr MatrixUnit matrix_unit(std::string_view arch) {
    if (arch == "gfx90a") return MatrixUnit::cdna2;
    if (arch == "gfx942") return MatrixUnit::cdna3;
    if (arch == "gfx950") return MatrixUnit::cdna4;
    // Written out, because the library's prefix functions can throw, which device code may not.
    const auto begins = [&](std::string_view prefix) {
        for (std::size_t i = 0; i < prefix.size(); ++i)
            if (i >= arch.size() || arch[i] != prefix[i]) return false;
        return true;
    };
    if (begins("gfx11")) return MatrixUnit::rdna3;
    if (begins("gfx12")) return MatrixUnit::rdna4;
    if (begins("sm_")) return MatrixUnit::nvidia;
    return MatrixUnit::none;
}

constexpr bool is_cdna(MatrixUnit unit) {
    return unit == MatrixUnit::cdna2 || unit == MatrixUnit::cdna3 || unit == MatrixUnit::cdna4;
}

enum class MatrixInstruction : std::uint8_t {
    none,
    mfma_32x32x8_f16,
    mfma_16x16x16_f16,
    mfma_32x32x8_bf16,
    mfma_16x16x16_bf16,
    mfma_32x32x16_f16,
    mfma_16x16x32_f16,
    mfma_32x32x16_bf16,
    mfma_16x16x32_bf16,
    mfma_32x32x16_fp8,
    mfma_16x16x32_fp8,
    mfma_32x32x16_bf8,
    mfma_16x16x32_bf8,
    mfma_32x32x2_f32,
    mfma_16x16x4_f32,
    mfma_32x32x64_fp8,
    mfma_32x32x64_bf8,
    mfma_scale_32x32x64_fp8,
    mfma_scale_16x16x128_fp8,
    mfma_scale_32x32x64_fp4,
    mfma_scale_16x16x128_fp4,
    wmma_gfx11_16x16x16_f16,
    wmma_gfx11_16x16x16_bf16,
    wmma_gfx12_16x16x16_f16,
    wmma_gfx12_16x16x16_bf16,
    wmma_gfx12_16x16x16_fp8,
    wmma_gfx12_16x16x16_bf8,
    mma_16x8x16_f16,
    mma_16x8x16_bf16,
    mma_16x8x8_f16,
    mma_16x8x8_bf16,
    mma_16x8x8_tf32,
    mma_16x8x32_fp8,
    mma_16x8x32_bf8,
};
inline constexpr int matrix_instructions = 34;

/// One coordinate of an element as a sum over the bits of its lane and of its register: all layouts of all
/// instructions are of this kind. An operand's "register" counts packed elements, not 32-bit words.
struct Axis {
    std::int8_t lane[6] = {}, reg[5] = {};

    FMHA_DEVICE constexpr int of_lane(int number) const {
        int sum = 0;
        for (int bit = 0; bit < 6; ++bit) sum += (number >> bit & 1) * lane[bit];
        return sum;
    }
    FMHA_DEVICE constexpr int of_reg(int number) const {
        int sum = 0;
        for (int bit = 0; bit < 5; ++bit) sum += (number >> bit & 1) * reg[bit];
        return sum;
    }
    FMHA_DEVICE constexpr int at(int lane_number, int reg_number) const {
        return of_lane(lane_number) + of_reg(reg_number);
    }
};

/// The lane that holds the scale of one row of A (or column of B) and one block of k: the row and the first k of the
/// block are sums over the bits of the lane. A lane holds one scale, which need not belong to its own elements.
struct ScaleMap {
    Axis outer, k;
};

/// C[m × n] += A[m × k] · B[k × n], by one wave. With `scale_block`, every so many k of a row of A and of a column of B
/// are multiplied by a power of two first: the lowest byte of a word that each lane adds to either operand (e8m0).
struct InstructionInfo {
    MatrixInstruction instruction = MatrixInstruction::none;
    std::int16_t m = 0, n = 0, k = 0;
    std::int16_t wave_size = 0;
    ElementType operand =
        ElementType::fp32; ///< of A and B; 8-bit types in the OCP or FNUZ flavour of the unit
    std::int16_t a_elements = 0, b_elements = 0, c_elements = 0; ///< per lane
    /// How many lanes hold each element of A and B. 2 on RDNA 3, where both half-waves hold all of them.
    std::int16_t copies = 1;
    Axis a_row, a_k, b_col, b_k, c_row, c_col;
    std::int16_t scale_block = 0; ///< 0: the instruction takes no scales
    ScaleMap a_scale = {}, b_scale = {};
};

namespace layouts {

/// MFMA of side 32 (lane bits 0–4 are the row of A and the column of B) with `per_lane` consecutive k a lane.
constexpr InstructionInfo mfma32(MatrixInstruction name, ElementType type, int per_lane) {
    const auto p = static_cast<std::int8_t>(per_lane);
    const Axis side{{1, 2, 4, 8, 16, 0}, {}};
    const Axis depth{{0, 0, 0, 0, 0, p}, {1, 2, 4, 8, 16}};
    const Axis c_row{{0, 0, 0, 0, 0, 4}, {1, 2, 8, 16}};
    const auto count = static_cast<std::int16_t>(per_lane);
    return {name, 32,    32,    static_cast<std::int16_t>(2 * per_lane),
            64,   type,  count, count,
            16,   1,     side,  depth,
            side, depth, c_row, side};
}

/// MFMA of side 16: four groups of lanes share a row.
constexpr InstructionInfo mfma16(MatrixInstruction name, ElementType type, int per_lane) {
    const auto p = static_cast<std::int8_t>(per_lane);
    const auto p2 = static_cast<std::int8_t>(2 * per_lane);
    const Axis side{{1, 2, 4, 8, 0, 0}, {}};
    const Axis depth{{0, 0, 0, 0, p, p2}, {1, 2, 4, 8, 16}};
    const Axis c_row{{0, 0, 0, 0, 4, 8}, {1, 2}};
    const auto count = static_cast<std::int16_t>(per_lane);
    return {name, 16,    16,    static_cast<std::int16_t>(4 * per_lane),
            64,   type,  count, count,
            4,    1,     side,  depth,
            side, depth, c_row, side};
}

/// Scaled MFMA of CDNA 4 for any two types of 8 bits or fewer: a lane has 32 k of each operand, in runs of 16 for types
/// of 8 bits and of 32 for those of 4. For every type the scale of row r in block g is in lane r + side · g.
constexpr InstructionInfo mfma_scale(MatrixInstruction name, ElementType type, int side) {
    constexpr int per_lane = 32, block = 32;
    InstructionInfo info = side == 32 ? mfma32(name, type, per_lane) : mfma16(name, type, per_lane);
    info.scale_block = block;
    const ScaleMap scale = side == 32 ? ScaleMap{info.a_row, {{0, 0, 0, 0, 0, 32}, {}}}
                                      : ScaleMap{info.a_row, {{0, 0, 0, 0, 32, 64}, {}}};
    info.a_scale = info.b_scale = scale;
    if (element_bits(type) == 8) {
        const Axis depth = side == 32 ? Axis{{0, 0, 0, 0, 0, 16}, {1, 2, 4, 8, 32}}
                                      : Axis{{0, 0, 0, 0, 16, 32}, {1, 2, 4, 8, 64}};
        info.a_k = info.b_k = depth;
    }
    return info;
}

/// WMMA of RDNA 3 in wave32: both half-waves hold all of A and B; C alternates rows between them. The table numbers the rows of A
/// and C so that those of a half-wave are one run: even ones first.
constexpr InstructionInfo wmma_gfx11(MatrixInstruction name, ElementType type) {
    const Axis side{{1, 2, 4, 8}, {}}, a_row{{8, 1, 2, 4}, {}};
    const Axis depth{{}, {1, 2, 4, 8}};
    const Axis c_row{{0, 0, 0, 0, 8}, {1, 2, 4}};
    return {name, 16, 16, 16, 32, type, 16, 16, 8, 2, a_row, depth, side, depth, c_row, side};
}

/// WMMA of RDNA 4 in wave32: the half-waves hold the halves of k, and of C's rows. For operands of 8 bits the calculator says
/// the same. For 16 bits it gives lanes 0–15 the k 0…3 and 8…11 and lanes 16–31 the others, in A and B alike. The row
/// numbers them so that a lane's elements are one run, and that weights are an operand as they stand in C's registers.
constexpr InstructionInfo wmma_gfx12(MatrixInstruction name, ElementType type) {
    const Axis side{{1, 2, 4, 8}, {}};
    const Axis depth{{0, 0, 0, 0, 8}, {1, 2, 4}};
    return {name, 16, 16, 16, 32, type, 8, 8, 8, 1, side, depth, side, depth, depth, side};
}

/// mma.sync m16n8k16 and m16n8k8 with 16-bit operands: quads of lanes share a row.
constexpr InstructionInfo mma_16bit(MatrixInstruction name, ElementType type, int k) {
    const bool deep = k == 16;
    const auto last = static_cast<std::int8_t>(deep ? 8 : 0);
    const auto a = static_cast<std::int16_t>(deep ? 8 : 4), b = static_cast<std::int16_t>(deep ? 4 : 2);
    const Axis a_row{{0, 0, 1, 2, 4}, {0, 8}}, a_k{{2, 4}, {1, 0, last}};
    const Axis b_col{{0, 0, 1, 2, 4}, {}}, b_k{{2, 4}, {1, last}};
    const Axis c_row{{0, 0, 1, 2, 4}, {0, 8}}, c_col{{2, 4}, {1}};
    return {name, 16,    8,    static_cast<std::int16_t>(k), 32, type, a, b, 4, 1, a_row, a_k, b_col,
            b_k,  c_row, c_col};
}

/// mma.sync m16n8k8 with TF32 operands, one element a register.
constexpr InstructionInfo mma_tf32(MatrixInstruction name) {
    const Axis a_row{{0, 0, 1, 2, 4}, {8}}, a_k{{1, 2}, {0, 4}};
    const Axis b_col{{0, 0, 1, 2, 4}, {}}, b_k{{1, 2}, {4}};
    const Axis c_row{{0, 0, 1, 2, 4}, {0, 8}}, c_col{{2, 4}, {1}};
    return {name, 16, 8, 8, 32, ElementType::fp32, 4, 2, 4, 1, a_row, a_k, b_col, b_k, c_row, c_col};
}

/// mma.sync m16n8k32 with 8-bit operands, four of them a register.
constexpr InstructionInfo mma_8bit(MatrixInstruction name, ElementType type) {
    const Axis a_row{{0, 0, 1, 2, 4}, {0, 0, 8}}, a_k{{4, 8}, {1, 2, 0, 16}};
    const Axis b_col{{0, 0, 1, 2, 4}, {}}, b_k{{4, 8}, {1, 2, 16}};
    const Axis c_row{{0, 0, 1, 2, 4}, {0, 8}}, c_col{{2, 4}, {1}};
    return {name, 16, 8, 32, 32, type, 16, 8, 4, 1, a_row, a_k, b_col, b_k, c_row, c_col};
}

} // namespace layouts

/// The table. 8-bit operands are given in their OCP flavour; on CDNA 3 the same instruction reads FNUZ codes.
constexpr InstructionInfo instruction_info(MatrixInstruction name) {
    using enum MatrixInstruction;
    using enum ElementType;
    switch (name) {
    case none:
        break;
    case mfma_32x32x8_f16:
        return layouts::mfma32(name, fp16, 4);
    case mfma_16x16x16_f16:
        return layouts::mfma16(name, fp16, 4);
    case mfma_32x32x8_bf16:
        return layouts::mfma32(name, bf16, 4);
    case mfma_16x16x16_bf16:
        return layouts::mfma16(name, bf16, 4);
    case mfma_32x32x16_f16:
        return layouts::mfma32(name, fp16, 8);
    case mfma_16x16x32_f16:
        return layouts::mfma16(name, fp16, 8);
    case mfma_32x32x16_bf16:
        return layouts::mfma32(name, bf16, 8);
    case mfma_16x16x32_bf16:
        return layouts::mfma16(name, bf16, 8);
    case mfma_32x32x16_fp8:
        return layouts::mfma32(name, fp8_ocp, 8);
    case mfma_16x16x32_fp8:
        return layouts::mfma16(name, fp8_ocp, 8);
    case mfma_32x32x16_bf8:
        return layouts::mfma32(name, bf8_ocp, 8);
    case mfma_16x16x32_bf8:
        return layouts::mfma16(name, bf8_ocp, 8);
    case mfma_32x32x2_f32:
        return layouts::mfma32(name, fp32, 1);
    case mfma_16x16x4_f32:
        return layouts::mfma16(name, fp32, 1);
    case mfma_32x32x64_fp8: // without scales: a lane's k are one run here, and two in the manual
        return layouts::mfma32(name, fp8_ocp, 32);
    case mfma_32x32x64_bf8:
        return layouts::mfma32(name, bf8_ocp, 32);
    case mfma_scale_32x32x64_fp8:
        return layouts::mfma_scale(name, fp8_ocp, 32);
    case mfma_scale_16x16x128_fp8:
        return layouts::mfma_scale(name, fp8_ocp, 16);
    case mfma_scale_32x32x64_fp4:
        return layouts::mfma_scale(name, fp4, 32);
    case mfma_scale_16x16x128_fp4:
        return layouts::mfma_scale(name, fp4, 16);
    case wmma_gfx11_16x16x16_f16:
        return layouts::wmma_gfx11(name, fp16);
    case wmma_gfx11_16x16x16_bf16:
        return layouts::wmma_gfx11(name, bf16);
    case wmma_gfx12_16x16x16_f16:
        return layouts::wmma_gfx12(name, fp16);
    case wmma_gfx12_16x16x16_bf16:
        return layouts::wmma_gfx12(name, bf16);
    case wmma_gfx12_16x16x16_fp8:
        return layouts::wmma_gfx12(name, fp8_ocp);
    case wmma_gfx12_16x16x16_bf8:
        return layouts::wmma_gfx12(name, bf8_ocp);
    case mma_16x8x16_f16:
        return layouts::mma_16bit(name, fp16, 16);
    case mma_16x8x16_bf16:
        return layouts::mma_16bit(name, bf16, 16);
    case mma_16x8x8_f16:
        return layouts::mma_16bit(name, fp16, 8);
    case mma_16x8x8_bf16:
        return layouts::mma_16bit(name, bf16, 8);
    case mma_16x8x8_tf32:
        return layouts::mma_tf32(name);
    case mma_16x8x32_fp8:
        return layouts::mma_8bit(name, fp8_ocp);
    case mma_16x8x32_bf8:
        return layouts::mma_8bit(name, bf8_ocp);
    }
    return {};
}

/// Whether `unit` executes the instruction.
constexpr bool has_instruction(MatrixUnit unit, MatrixInstruction name) {
    using enum MatrixInstruction;
    switch (unit) {
    case MatrixUnit::none:
        return false;
    case MatrixUnit::cdna2:
        return (name >= mfma_32x32x8_f16 && name <= mfma_16x16x16_bf16) || name == mfma_32x32x2_f32 ||
               name == mfma_16x16x4_f32;
    case MatrixUnit::cdna3:
        return has_instruction(MatrixUnit::cdna2, name) ||
               (name >= mfma_32x32x16_fp8 && name <= mfma_16x16x32_bf8);
    case MatrixUnit::cdna4:
        return name >= mfma_32x32x8_f16 && name <= mfma_scale_16x16x128_fp4;
    case MatrixUnit::rdna3:
        return name == wmma_gfx11_16x16x16_f16 || name == wmma_gfx11_16x16x16_bf16;
    case MatrixUnit::rdna4:
        return name >= wmma_gfx12_16x16x16_f16 && name <= wmma_gfx12_16x16x16_bf8;
    case MatrixUnit::nvidia:
        return name >= mma_16x8x16_f16 && name <= mma_16x8x32_bf8;
    }
    return false;
}

/// The instruction behind a configuration's triple (m, n, k) for operands of `type`: the deepest one of the
/// unit whose k divides the triple's, so that a triple deeper than the hardware is several instructions on
/// consecutive registers. `none` when there is no such instruction. Only `scaled` operands have
/// instructions that take scales.
constexpr MatrixInstruction instruction_for(MatrixUnit unit, ElementType type, int m, int n, int k,
                                            bool scaled = false) {
    const auto base = type == ElementType::fp8_fnuz   ? ElementType::fp8_ocp
                      : type == ElementType::bf8_fnuz ? ElementType::bf8_ocp
                                                      : type;
    MatrixInstruction best = MatrixInstruction::none;
    int depth = 0;
    for (int i = 1; i < matrix_instructions; ++i) {
        const auto name = static_cast<MatrixInstruction>(i);
        const InstructionInfo info = instruction_info(name);
        if (!has_instruction(unit, name) || info.operand != base || info.m != m || info.n != n) continue;
        if ((info.scale_block != 0) != scaled) continue;
        if (info.k > depth && k % info.k == 0) {
            best = name;
            depth = info.k;
        }
    }
    return best;
}

/// How deep the instructions of a triple of depth k are in a product of operands of `type`, `depth` deep, whose steps are `step` deep.
/// Upstream's tables name CDNA 3's depths on CDNA 4. With 16 bits it takes as long for these as for twice them, and with 8 bits half as
/// long as for four times 32x32x16. Where a step of 16 bits, and a tile of 8, allows, several of them become one. A sum then has the same terms
/// in another order, which no declared number depends on.
constexpr int depth_of_triple(MatrixUnit unit, ElementType type, int m, int k, int step, int depth) {
    if (unit != MatrixUnit::cdna4) return k;
    if (element_bits(type) == 16) {
        const int whole = m == 32 ? 16 : 32;
        return 2 * k == whole && step % whole == 0 ? whole : k;
    }
    constexpr int wide = 64;
    const bool fits = depth % wide == 0 && (step % wide == 0 || wide % step == 0);
    return element_bits(type) == 8 && m == 32 && k < wide && wide % k == 0 && fits ? wide : k;
}

} // namespace fmha::hip_target
