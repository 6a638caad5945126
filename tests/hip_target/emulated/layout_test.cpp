// The matrix-instruction table: properties that every row has, and single facts written down from the
// manufacturers' manuals, so that a wrong row cannot agree with itself.

#include "kernels/targets/hip/instruction_names.hpp"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace fmha::hip_target {
namespace {

using enum MatrixInstruction;

std::vector<MatrixInstruction> all_instructions() {
    std::vector<MatrixInstruction> names;
    for (int i = 1; i < matrix_instructions; ++i) names.push_back(static_cast<MatrixInstruction>(i));
    return names;
}

/// How many (lane, element) hold each place of a rows × cols matrix; places outside are held under (−1, −1).
std::map<std::pair<int, int>, int> holders(const InstructionInfo& info, const Axis& row, const Axis& col,
                                           int elements, int rows, int cols) {
    std::map<std::pair<int, int>, int> count;
    for (int lane = 0; lane < info.wave_size; ++lane)
        for (int e = 0; e < elements; ++e) {
            const int r = row.at(lane, e), c = col.at(lane, e);
            const bool inside = r >= 0 && r < rows && c >= 0 && c < cols;
            ++count[inside ? std::pair{r, c} : std::pair{-1, -1}];
        }
    return count;
}

void expect_each_held(const std::map<std::pair<int, int>, int>& count, int rows, int cols, int times) {
    EXPECT_EQ(count.size(), static_cast<std::size_t>(rows * cols));
    for (const auto& [place, n] : count)
        EXPECT_EQ(n, times) << "place (" << place.first << ", " << place.second << ")";
}

class Layout : public testing::TestWithParam<MatrixInstruction> {};

TEST_P(Layout, EveryElementOfCIsOwnedOnce) {
    const InstructionInfo info = instruction_info(GetParam());
    expect_each_held(holders(info, info.c_row, info.c_col, info.c_elements, info.m, info.n), info.m, info.n,
                     1);
}

TEST_P(Layout, OperandsAreHeldAsOftenAsTheTableSays) {
    const InstructionInfo info = instruction_info(GetParam());
    expect_each_held(holders(info, info.a_row, info.a_k, info.a_elements, info.m, info.k), info.m, info.k,
                     info.copies);
    expect_each_held(holders(info, info.b_k, info.b_col, info.b_elements, info.k, info.n), info.k, info.n,
                     info.copies);
}

TEST_P(Layout, EveryScaleIsHeldOnce) {
    const InstructionInfo info = instruction_info(GetParam());
    if (info.scale_block == 0) return;
    const auto expect_once = [&](const ScaleMap& map, int outer) {
        std::map<std::pair<int, int>, int> count;
        for (int lane = 0; lane < info.wave_size; ++lane)
            ++count[{map.outer.of_lane(lane), map.k.of_lane(lane)}];
        EXPECT_EQ(count.size(), static_cast<std::size_t>(outer * info.k / info.scale_block));
        for (const auto& [place, n] : count) {
            EXPECT_EQ(n, 1);
            EXPECT_LT(place.first, outer);
            EXPECT_LT(place.second, info.k);
            EXPECT_EQ(place.second % info.scale_block, 0);
        }
    };
    expect_once(info.a_scale, info.m);
    expect_once(info.b_scale, info.n);
}

TEST_P(Layout, OperandsFillWholeWords) {
    const InstructionInfo info = instruction_info(GetParam());
    EXPECT_EQ(info.instruction, GetParam());
    EXPECT_EQ(info.a_elements * element_bits(info.operand) % 32, 0);
    EXPECT_EQ(info.b_elements * element_bits(info.operand) % 32, 0);
}

INSTANTIATE_TEST_SUITE_P(Table, Layout, testing::ValuesIn(all_instructions()),
                         [](const auto& name) { return std::string(to_string(name.param)); });

/// Element `element` of lane `lane` is (row, col) of A (m × k), B (k × n) or C (m × n).
struct Fact {
    MatrixInstruction instruction;
    char matrix;
    int lane, element, row, col;
};

// AMD: "Matrix Core" chapters of the instruction set manuals of CDNA 2, 3 and 4 and of RDNA 3 and 4. NVIDIA: PTX,
// "Warp-level matrix instructions", fragments of mma.m16n8k8 and mma.m16n8k16.
const std::vector<Fact>& facts() {
    static const std::vector<Fact> list{
        // 32 × 32: lanes 0–31 are the rows of A, the upper half of the wave holds the next k.
        {mfma_32x32x8_f16, 'A', 5, 3, 5, 3},
        {mfma_32x32x8_f16, 'A', 37, 0, 5, 4},
        {mfma_32x32x8_f16, 'B', 31, 2, 2, 31},
        {mfma_32x32x8_f16, 'B', 32, 3, 7, 0},
        {mfma_32x32x8_f16, 'C', 0, 3, 3, 0},
        {mfma_32x32x8_f16, 'C', 0, 4, 8, 0},
        {mfma_32x32x8_f16, 'C', 32, 0, 4, 0},
        {mfma_32x32x8_f16, 'C', 40, 5, 13, 8},
        {mfma_32x32x8_f16, 'C', 63, 15, 31, 31},
        {mfma_32x32x8_bf16, 'A', 63, 3, 31, 7},
        {mfma_32x32x8_bf16, 'B', 33, 1, 5, 1},
        {mfma_32x32x8_bf16, 'C', 1, 9, 17, 1},
        {mfma_32x32x8_bf16, 'C', 33, 12, 28, 1},
        // 16 × 16: four groups of lanes share the rows.
        {mfma_16x16x16_f16, 'A', 17, 1, 1, 5},
        {mfma_16x16x16_f16, 'A', 63, 3, 15, 15},
        {mfma_16x16x16_f16, 'B', 34, 2, 10, 2},
        {mfma_16x16x16_f16, 'C', 16, 0, 4, 0},
        {mfma_16x16x16_f16, 'C', 33, 2, 10, 1},
        {mfma_16x16x16_f16, 'C', 63, 3, 15, 15},
        {mfma_16x16x16_bf16, 'A', 32, 0, 0, 8},
        {mfma_16x16x16_bf16, 'B', 18, 3, 7, 2},
        {mfma_16x16x16_bf16, 'C', 49, 1, 13, 1},
        // CDNA 4: twice as deep, eight consecutive k a lane.
        {mfma_32x32x16_f16, 'A', 3, 7, 3, 7},
        {mfma_32x32x16_f16, 'A', 35, 0, 3, 8},
        {mfma_32x32x16_f16, 'B', 63, 7, 15, 31},
        {mfma_32x32x16_f16, 'C', 32, 4, 12, 0},
        {mfma_32x32x16_bf16, 'A', 32, 2, 0, 10},
        {mfma_32x32x16_bf16, 'B', 34, 5, 13, 2},
        {mfma_32x32x16_bf16, 'C', 7, 6, 10, 7},
        {mfma_16x16x32_f16, 'A', 16, 0, 0, 8},
        {mfma_16x16x32_f16, 'A', 63, 7, 15, 31},
        {mfma_16x16x32_f16, 'B', 33, 4, 20, 1},
        {mfma_16x16x32_f16, 'C', 17, 3, 7, 1},
        {mfma_16x16x32_bf16, 'A', 48, 1, 0, 25},
        {mfma_16x16x32_bf16, 'B', 5, 6, 6, 5},
        {mfma_16x16x32_bf16, 'C', 32, 1, 9, 0},
        // 8 bits: eight a lane.
        {mfma_32x32x16_fp8, 'A', 31, 7, 31, 7},
        {mfma_32x32x16_fp8, 'A', 32, 1, 0, 9},
        {mfma_32x32x16_fp8, 'B', 40, 3, 11, 8},
        {mfma_32x32x16_fp8, 'C', 34, 8, 20, 2},
        {mfma_32x32x16_bf8, 'A', 33, 7, 1, 15},
        {mfma_32x32x16_bf8, 'B', 1, 4, 4, 1},
        {mfma_32x32x16_bf8, 'C', 63, 0, 4, 31},
        {mfma_16x16x32_fp8, 'A', 20, 2, 4, 10},
        {mfma_16x16x32_fp8, 'B', 47, 7, 23, 15},
        {mfma_16x16x32_fp8, 'C', 48, 2, 14, 0},
        {mfma_16x16x32_bf8, 'A', 32, 5, 0, 21},
        {mfma_16x16x32_bf8, 'B', 16, 0, 8, 0},
        {mfma_16x16x32_bf8, 'C', 15, 3, 3, 15},
        // fp32: one element a lane.
        {mfma_32x32x2_f32, 'A', 31, 0, 31, 0},
        {mfma_32x32x2_f32, 'A', 33, 0, 1, 1},
        {mfma_32x32x2_f32, 'B', 62, 0, 1, 30},
        {mfma_32x32x2_f32, 'C', 33, 7, 15, 1},
        {mfma_16x16x4_f32, 'A', 18, 0, 2, 1},
        {mfma_16x16x4_f32, 'B', 63, 0, 3, 15},
        {mfma_16x16x4_f32, 'C', 50, 3, 15, 2},
        // CDNA 4, types of 8 bits and fewer: 32 k a lane; of 8 bits, in two runs of 16 where blocks have scales.
        {mfma_32x32x64_fp8, 'A', 37, 0, 5, 32},
        {mfma_32x32x64_fp8, 'B', 31, 20, 20, 31},
        {mfma_32x32x64_fp8, 'C', 40, 5, 13, 8},
        {mfma_32x32x64_bf8, 'A', 63, 31, 31, 63},
        {mfma_32x32x64_bf8, 'B', 32, 3, 35, 0},
        {mfma_32x32x64_bf8, 'C', 63, 15, 31, 31},
        {mfma_scale_32x32x64_fp8, 'A', 5, 15, 5, 15},
        {mfma_scale_32x32x64_fp8, 'A', 37, 0, 5, 16},
        {mfma_scale_32x32x64_fp8, 'A', 5, 16, 5, 32},
        {mfma_scale_32x32x64_fp8, 'A', 63, 31, 31, 63},
        {mfma_scale_32x32x64_fp8, 'B', 32, 3, 19, 0},
        {mfma_scale_32x32x64_fp8, 'B', 31, 20, 36, 31},
        {mfma_scale_32x32x64_fp8, 'C', 40, 5, 13, 8},
        {mfma_scale_16x16x128_fp8, 'A', 17, 0, 1, 16},
        {mfma_scale_16x16x128_fp8, 'A', 33, 2, 1, 34},
        {mfma_scale_16x16x128_fp8, 'A', 0, 16, 0, 64},
        {mfma_scale_16x16x128_fp8, 'A', 63, 31, 15, 127},
        {mfma_scale_16x16x128_fp8, 'B', 50, 17, 113, 2},
        {mfma_scale_16x16x128_fp8, 'C', 33, 2, 10, 1},
        {mfma_scale_32x32x64_fp4, 'A', 5, 31, 5, 31},
        {mfma_scale_32x32x64_fp4, 'A', 37, 0, 5, 32},
        {mfma_scale_32x32x64_fp4, 'B', 63, 17, 49, 31},
        {mfma_scale_32x32x64_fp4, 'C', 32, 4, 12, 0},
        {mfma_scale_16x16x128_fp4, 'A', 17, 1, 1, 33},
        {mfma_scale_16x16x128_fp4, 'A', 40, 30, 8, 94},
        {mfma_scale_16x16x128_fp4, 'B', 63, 31, 127, 15},
        {mfma_scale_16x16x128_fp4, 'C', 17, 3, 7, 1},
        // RDNA 3: both half-waves hold all of A and B, C alternates rows between them. The manual's row 2i of A and C is i here,
        // and its row 2i + 1 is 8 + i.
        {wmma_gfx11_16x16x16_f16, 'A', 3, 9, 9, 9},
        {wmma_gfx11_16x16x16_f16, 'A', 19, 9, 9, 9},
        {wmma_gfx11_16x16x16_f16, 'B', 31, 15, 15, 15},
        {wmma_gfx11_16x16x16_f16, 'C', 0, 1, 1, 0},
        {wmma_gfx11_16x16x16_f16, 'C', 16, 0, 8, 0},
        {wmma_gfx11_16x16x16_f16, 'C', 31, 7, 15, 15},
        {wmma_gfx11_16x16x16_bf16, 'A', 16, 0, 0, 0},
        {wmma_gfx11_16x16x16_bf16, 'A', 6, 2, 3, 2},
        {wmma_gfx11_16x16x16_bf16, 'B', 2, 14, 14, 2},
        {wmma_gfx11_16x16x16_bf16, 'C', 20, 3, 11, 4},
        // RDNA 4: the half-waves hold the halves of k, and of the rows of C.
        {wmma_gfx12_16x16x16_f16, 'A', 3, 7, 3, 7},
        {wmma_gfx12_16x16x16_f16, 'A', 19, 0, 3, 8},
        {wmma_gfx12_16x16x16_f16, 'B', 31, 7, 15, 15},
        {wmma_gfx12_16x16x16_f16, 'C', 0, 1, 1, 0},
        {wmma_gfx12_16x16x16_f16, 'C', 16, 0, 8, 0},
        {wmma_gfx12_16x16x16_f16, 'C', 31, 7, 15, 15},
        {wmma_gfx12_16x16x16_bf16, 'A', 17, 5, 1, 13},
        {wmma_gfx12_16x16x16_bf16, 'B', 1, 6, 6, 1},
        {wmma_gfx12_16x16x16_bf16, 'C', 18, 2, 10, 2},
        {wmma_gfx12_16x16x16_fp8, 'A', 16, 3, 0, 11},
        {wmma_gfx12_16x16x16_fp8, 'B', 9, 2, 2, 9},
        {wmma_gfx12_16x16x16_fp8, 'C', 24, 4, 12, 8},
        {wmma_gfx12_16x16x16_bf8, 'A', 0, 7, 0, 7},
        {wmma_gfx12_16x16x16_bf8, 'B', 30, 0, 8, 14},
        {wmma_gfx12_16x16x16_bf8, 'C', 15, 7, 7, 15},
        // mma.sync: group = lane / 4, thread of the group = lane % 4.
        {mma_16x8x16_f16, 'A', 5, 0, 1, 2},
        {mma_16x8x16_f16, 'A', 5, 3, 9, 3},
        {mma_16x8x16_f16, 'A', 31, 4, 7, 14},
        {mma_16x8x16_f16, 'A', 31, 7, 15, 15},
        {mma_16x8x16_f16, 'B', 6, 1, 5, 1},
        {mma_16x8x16_f16, 'B', 6, 2, 12, 1},
        {mma_16x8x16_f16, 'C', 6, 1, 1, 5},
        {mma_16x8x16_f16, 'C', 6, 2, 9, 4},
        {mma_16x8x16_bf16, 'A', 4, 6, 9, 8},
        {mma_16x8x16_bf16, 'B', 31, 3, 15, 7},
        {mma_16x8x16_bf16, 'C', 31, 3, 15, 7},
        {mma_16x8x8_f16, 'A', 7, 1, 1, 7},
        {mma_16x8x8_f16, 'A', 7, 2, 9, 6},
        {mma_16x8x8_f16, 'B', 9, 1, 3, 2},
        {mma_16x8x8_f16, 'C', 9, 2, 10, 2},
        {mma_16x8x8_bf16, 'A', 30, 3, 15, 5},
        {mma_16x8x8_bf16, 'B', 3, 0, 6, 0},
        {mma_16x8x8_bf16, 'C', 13, 1, 3, 3},
        {mma_16x8x8_tf32, 'A', 6, 0, 1, 2},
        {mma_16x8x8_tf32, 'A', 6, 1, 9, 2},
        {mma_16x8x8_tf32, 'A', 6, 2, 1, 6},
        {mma_16x8x8_tf32, 'A', 6, 3, 9, 6},
        {mma_16x8x8_tf32, 'B', 6, 1, 6, 1},
        {mma_16x8x8_tf32, 'C', 6, 3, 9, 5},
        {mma_16x8x32_fp8, 'A', 6, 5, 9, 9},
        {mma_16x8x32_fp8, 'A', 6, 10, 1, 26},
        {mma_16x8x32_fp8, 'A', 6, 15, 9, 27},
        {mma_16x8x32_fp8, 'B', 6, 1, 9, 1},
        {mma_16x8x32_fp8, 'B', 6, 6, 26, 1},
        {mma_16x8x32_fp8, 'C', 6, 3, 9, 5},
        {mma_16x8x32_bf8, 'A', 29, 6, 15, 6},
        {mma_16x8x32_bf8, 'B', 29, 7, 23, 7},
        {mma_16x8x32_bf8, 'C', 29, 0, 7, 2},
    };
    return list;
}

TEST(LayoutFacts, TheTableAgreesWithTheManuals) {
    for (const Fact& fact : facts()) {
        const InstructionInfo info = instruction_info(fact.instruction);
        const Axis& row = fact.matrix == 'A' ? info.a_row : fact.matrix == 'B' ? info.b_k : info.c_row;
        const Axis& col = fact.matrix == 'A' ? info.a_k : fact.matrix == 'B' ? info.b_col : info.c_col;
        EXPECT_EQ(std::pair(row.at(fact.lane, fact.element), col.at(fact.lane, fact.element)),
                  std::pair(fact.row, fact.col))
            << to_string(fact.instruction) << ", " << fact.matrix << ", lane " << fact.lane << ", element "
            << fact.element;
    }
}

/// The hardware's k of the 16-bit elements of a lane on RDNA 4, as AMD's matrix-instruction calculator prints them.
constexpr int gfx12_k[2][8] = {{0, 1, 2, 3, 8, 9, 10, 11}, {4, 5, 6, 7, 12, 13, 14, 15}};

TEST(LayoutFacts, Rdna4NumbersTheDepthOfBothOperandsAlike) {
    for (const MatrixInstruction name : {wmma_gfx12_16x16x16_f16, wmma_gfx12_16x16x16_bf16}) {
        const InstructionInfo info = instruction_info(name);
        std::map<int, int> of_a, of_b; // the table's k → the hardware's
        for (int lane = 0; lane < info.wave_size; ++lane)
            for (int e = 0; e < info.a_elements; ++e) {
                const int hardware = gfx12_k[lane / 16][e];
                EXPECT_EQ(of_a.try_emplace(info.a_k.at(lane, e), hardware).first->second, hardware);
                EXPECT_EQ(of_b.try_emplace(info.b_k.at(lane, e), hardware).first->second, hardware);
            }
        EXPECT_EQ(of_a.size(), 16U) << to_string(name);
        EXPECT_EQ(of_a, of_b) << to_string(name);
    }
}

/// The hardware's k of the 8-bit elements of a lane: two runs of 16, as with scales.
TEST(LayoutFacts, Cdna4NumbersTheDepthOfBothOperandsAlikeWithoutScales) {
    const InstructionInfo hardware = instruction_info(mfma_scale_32x32x64_fp8);
    for (const MatrixInstruction name : {mfma_32x32x64_fp8, mfma_32x32x64_bf8}) {
        const InstructionInfo info = instruction_info(name);
        std::map<int, int> of_a, of_b; // the table's k → the hardware's
        for (int lane = 0; lane < info.wave_size; ++lane)
            for (int e = 0; e < info.a_elements; ++e) {
                const int k = hardware.a_k.at(lane, e);
                EXPECT_EQ(of_a.try_emplace(info.a_k.at(lane, e), k).first->second, k);
                EXPECT_EQ(of_b.try_emplace(info.b_k.at(lane, e), k).first->second, k);
            }
        EXPECT_EQ(of_a.size(), 64U) << to_string(name);
        EXPECT_EQ(of_a, of_b) << to_string(name);
    }
}

/// Lane `lane` has the scale of the 32 k from `k` on of row `outer` of A, or of column `outer` of B.
struct ScaleFact {
    MatrixInstruction instruction;
    int lane, outer, k;
};

TEST(LayoutFacts, ScalesAgreeWithTheManual) {
    // CDNA 4, "MFMA with Block Exponent Scaling": the same layout for A and B and for every type.
    for (const ScaleFact& fact :
         {ScaleFact{mfma_scale_16x16x128_fp8, 1, 1, 0}, ScaleFact{mfma_scale_16x16x128_fp8, 15, 15, 0},
          ScaleFact{mfma_scale_16x16x128_fp8, 16, 0, 32}, ScaleFact{mfma_scale_16x16x128_fp8, 32, 0, 64},
          ScaleFact{mfma_scale_16x16x128_fp4, 16, 0, 32}, ScaleFact{mfma_scale_16x16x128_fp4, 63, 15, 96},
          ScaleFact{mfma_scale_32x32x64_fp8, 15, 15, 0}, ScaleFact{mfma_scale_32x32x64_fp8, 16, 16, 0},
          ScaleFact{mfma_scale_32x32x64_fp8, 32, 0, 32}, ScaleFact{mfma_scale_32x32x64_fp8, 63, 31, 32},
          ScaleFact{mfma_scale_32x32x64_fp4, 16, 16, 0}, ScaleFact{mfma_scale_32x32x64_fp4, 63, 31, 32}}) {
        const InstructionInfo info = instruction_info(fact.instruction);
        for (const ScaleMap& map : {info.a_scale, info.b_scale})
            EXPECT_EQ(std::pair(map.outer.of_lane(fact.lane), map.k.of_lane(fact.lane)),
                      std::pair(fact.outer, fact.k))
                << to_string(fact.instruction) << ", lane " << fact.lane;
    }
}

TEST(LayoutFacts, EveryInstructionHasSomeOfEveryMatrix) {
    std::map<std::pair<MatrixInstruction, char>, int> count;
    for (const Fact& fact : facts()) ++count[{fact.instruction, fact.matrix}];
    for (const MatrixInstruction name : all_instructions())
        for (const char matrix : {'A', 'B', 'C'})
            EXPECT_GT((count[{name, matrix}]), 0) << to_string(name) << " " << matrix;
}

TEST(InstructionShapes, AreThoseOfTheirNames) {
    struct Shape {
        MatrixInstruction instruction;
        int m, n, k, wave_size;
    };
    for (const Shape& shape :
         {Shape{mfma_32x32x8_f16, 32, 32, 8, 64},         Shape{mfma_16x16x16_bf16, 16, 16, 16, 64},
          Shape{mfma_32x32x16_f16, 32, 32, 16, 64},       Shape{mfma_16x16x32_bf16, 16, 16, 32, 64},
          Shape{mfma_32x32x16_fp8, 32, 32, 16, 64},       Shape{mfma_16x16x32_bf8, 16, 16, 32, 64},
          Shape{mfma_32x32x64_fp8, 32, 32, 64, 64},       Shape{mfma_32x32x64_bf8, 32, 32, 64, 64},
          Shape{mfma_scale_32x32x64_fp8, 32, 32, 64, 64}, Shape{mfma_scale_16x16x128_fp8, 16, 16, 128, 64},
          Shape{mfma_scale_32x32x64_fp4, 32, 32, 64, 64}, Shape{mfma_scale_16x16x128_fp4, 16, 16, 128, 64},
          Shape{mfma_32x32x2_f32, 32, 32, 2, 64},         Shape{mfma_16x16x4_f32, 16, 16, 4, 64},
          Shape{wmma_gfx11_16x16x16_f16, 16, 16, 16, 32}, Shape{wmma_gfx12_16x16x16_fp8, 16, 16, 16, 32},
          Shape{mma_16x8x16_f16, 16, 8, 16, 32},          Shape{mma_16x8x8_bf16, 16, 8, 8, 32},
          Shape{mma_16x8x8_tf32, 16, 8, 8, 32},           Shape{mma_16x8x32_bf8, 16, 8, 32, 32}}) {
        const InstructionInfo info = instruction_info(shape.instruction);
        EXPECT_EQ(info.m, shape.m);
        EXPECT_EQ(info.n, shape.n);
        EXPECT_EQ(info.k, shape.k);
        EXPECT_EQ(info.wave_size, shape.wave_size);
    }
}

} // namespace
} // namespace fmha::hip_target
