// The model of every matrix instruction against a plain product. The test reads no lane map of the model: it
// scatters operands and gathers results by the table, and tells every element of A and B apart by its value.

#include "kernels/programs/formats.hpp"
#include "kernels/targets/hip/emulated/machine.hpp"

#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <functional>

namespace fmha::hip_target {
namespace {

using enum MatrixInstruction;

struct Cell {
    MatrixInstruction instruction;
    MatrixUnit unit;
};

std::vector<Cell> all_cells() {
    std::vector<Cell> cells;
    for (int i = 1; i < matrix_instructions; ++i)
        for (const MatrixUnit unit : {MatrixUnit::cdna2, MatrixUnit::cdna3, MatrixUnit::cdna4,
                                      MatrixUnit::rdna3, MatrixUnit::rdna4, MatrixUnit::nvidia})
            if (has_instruction(unit, static_cast<MatrixInstruction>(i)))
                cells.push_back({static_cast<MatrixInstruction>(i), unit});
    return cells;
}

ElementType stored_type(const Cell& cell) {
    const ElementType type = instruction_info(cell.instruction).operand;
    if (cell.unit == MatrixUnit::cdna3 && type == ElementType::fp8_ocp) return ElementType::fp8_fnuz;
    if (cell.unit == MatrixUnit::cdna3 && type == ElementType::bf8_ocp) return ElementType::bf8_fnuz;
    return type;
}

double value_of(std::uint32_t code, ElementType type) {
    if (type == ElementType::fp32) return static_cast<double>(std::bit_cast<float>(code));
    return static_cast<double>(kernels::decode(code, kernels::format_of(type)));
}

/// How many different positive values are at hand, which TF32 represents too.
int distinct_codes(ElementType type) {
    switch (element_bits(type)) {
    case 32:
    case 16:
        return 1024;
    case 8:
        return 64;
    default:
        return 7;
    }
}

/// The digit that stands for the lowest one of n in a number system with so many digits, after `digit` others.
std::uint32_t distinct_code(int n, ElementType type, int digit = 0) {
    for (; digit > 0; --digit) n /= distinct_codes(type);
    n %= distinct_codes(type);
    switch (element_bits(type)) {
    case 32:
        return std::bit_cast<std::uint32_t>(static_cast<float>(n + 1));
    case 16:
        return (type == ElementType::fp16 ? 0x3C00U : 0x3F80U) + static_cast<std::uint32_t>(n);
    case 8:
        return 0x20U + static_cast<std::uint32_t>(n);
    default:
        return 1U + static_cast<std::uint32_t>(n);
    }
}

/// Digits that tell `count` numbers apart.
int digits(int count, ElementType type) {
    int number = 1;
    for (int told = distinct_codes(type); told < count; told *= distinct_codes(type)) ++number;
    return number;
}

using Codes = std::function<std::uint32_t(int, int)>;

constexpr std::uint32_t unscaled = 127; // e8m0

/// The scales of an operand of a scaled instruction: of (row of A or column of B, block).
struct Scales {
    Codes a = [](int, int) { return unscaled; };
    Codes b = [](int, int) { return unscaled; };
};

/// Two waves that multiply once. Wave 1 sees the operands negated in A's place, to tell the waves apart.
class Multiplication {
  public:
    explicit Multiplication(const Cell& cell)
        : info_(instruction_info(cell.instruction)), type_(stored_type(cell)),
          machine_({cell.unit, 2 * info_.wave_size, info_.wave_size, 16}),
          a_(machine_.threads(), words(info_.a_elements) + scale_words() + offset),
          b_(machine_.threads(), words(info_.b_elements) + scale_words()),
          c_(machine_.threads(), info_.c_elements + offset) {}

    const InstructionInfo& info() const { return info_; }
    ElementType type() const { return type_; }
    EmulatedRegisters<std::uint32_t>& a() { return a_; }

    void run(const Codes& a, const Codes& b, const std::function<float(int, int)>& c,
             const Scales& scales = {}) {
        const std::uint32_t sign = 1U << static_cast<unsigned>(element_bits(type_) - 1);
        machine_.each([&](int t) {
            const int lane = t % info_.wave_size;
            // The FNUZ code of −0 is NaN.
            const auto flipped = [&](std::uint32_t code) {
                return t < info_.wave_size || code == 0 ? code : code ^ sign;
            };
            for (int w = 0; w < words(info_.a_elements); ++w) a_.at(t, offset + w) = 0;
            for (int w = 0; w < words(info_.b_elements); ++w) b_.at(t, w) = 0;
            for (int e = 0; e < info_.a_elements; ++e)
                put(a_.at(t, offset + word_of(e)), e,
                    flipped(a(info_.a_row.at(lane, e), info_.a_k.at(lane, e))));
            for (int e = 0; e < info_.b_elements; ++e)
                put(b_.at(t, word_of(e)), e, b(info_.b_k.at(lane, e), info_.b_col.at(lane, e)));
            if (info_.scale_block != 0) {
                // Bits above the lowest eight are no part of a scale.
                const auto of = [&](const ScaleMap& map, const Codes& codes) {
                    return 0xABCDEF00U |
                           codes(map.outer.of_lane(lane), map.k.of_lane(lane) / info_.scale_block);
                };
                a_.at(t, offset + words(info_.a_elements)) = of(info_.a_scale, scales.a);
                b_.at(t, words(info_.b_elements)) = of(info_.b_scale, scales.b);
            }
            for (int r = 0; r < info_.c_elements; ++r)
                c_.at(t, offset + r) = c(info_.c_row.at(lane, r), info_.c_col.at(lane, r));
        });
        multiply();
    }
    void multiply() { machine_.mma(info_.instruction, c_, offset, a_, offset, b_, 0); }

    /// Compares all of C of both waves with the plain product.
    void expect_product(const Codes& a, const Codes& b, const std::function<float(int, int)>& c,
                        const Scales& scales = {}) const {
        machine_.each([&](int t) {
            const int lane = t % info_.wave_size;
            const double sign = t < info_.wave_size ? 1.0 : -1.0;
            for (int r = 0; r < info_.c_elements; ++r) {
                const int row = info_.c_row.at(lane, r), col = info_.c_col.at(lane, r);
                double sum = static_cast<double>(c(row, col));
                for (int k = 0; k < info_.k; ++k)
                    sum += sign * value_of(a(row, k), type_) * value_of(b(k, col), type_) *
                           power(scales.a, row, k) * power(scales.b, col, k);
                ASSERT_EQ(c_.at(t, offset + r), static_cast<float>(sum))
                    << "thread " << t << ", register " << r;
            }
        });
    }

  private:
    static constexpr int offset = 3; // fragments begin anywhere among a thread's registers

    int scale_words() const { return info_.scale_block != 0 ? 1 : 0; }
    double power(const Codes& scales, int outer, int k) const {
        if (info_.scale_block == 0) return 1.0;
        return std::ldexp(1.0, static_cast<int>(scales(outer, k / info_.scale_block)) - 127);
    }
    int per_word() const { return 32 / element_bits(type_); }
    int words(int elements) const { return elements / per_word(); }
    int word_of(int element) const { return element / per_word(); }
    void put(std::uint32_t& word, int element, std::uint32_t code) const {
        word |= code << static_cast<unsigned>(element % per_word() * element_bits(type_));
    }

    InstructionInfo info_;
    ElementType type_;
    EmulatedMachine machine_;
    EmulatedRegisters<std::uint32_t> a_, b_;
    EmulatedRegisters<float> c_;
};

class MatrixProduct : public testing::TestWithParam<Cell> {};

TEST_P(MatrixProduct, OfDistinctElements) {
    Multiplication mma(GetParam());
    // Narrow types have too few values for every place of A, so that a row or a column is told apart at a time, digit by
    // digit.
    const bool few = element_bits(mma.type()) <= 8;
    const int k = mma.info().k, n = mma.info().n;
    for (int digit = 0; digit < (few ? digits(k, mma.type()) : 1); ++digit)
        for (const bool by_row : {false, true}) {
            const Codes a = [&](int row, int depth) {
                return few ? distinct_code(by_row ? row : depth, mma.type(), digit)
                           : distinct_code(row * k + depth, mma.type());
            };
            const Codes b = [&](int depth, int col) {
                return few ? distinct_code(by_row ? depth : col, mma.type(), digit)
                           : distinct_code(depth * n + col, mma.type());
            };
            const auto c = [](int row, int col) { return static_cast<float>(100 * row - col); };
            mma.run(a, b, c);
            mma.expect_product(a, b, c);
        }
}

TEST_P(MatrixProduct, FindsEveryElementOfA) {
    Multiplication mma(GetParam());
    const std::uint32_t one = kernels::encode(1.0F, mma.type());
    const auto zero = [](int, int) { return 0.0F; };
    const int k = mma.info().k;
    for (int digit = 0; digit < digits(k, mma.type()); ++digit) {
        const Codes b = [&](int depth, int) { return distinct_code(depth, mma.type(), digit); };
        // Another element of every row at a time.
        for (int first = 0; first < k; ++first) {
            const Codes a = [&](int row, int depth) { return depth == (first + row) % k ? one : 0U; };
            mma.run(a, b, zero);
            mma.expect_product(a, b, zero);
        }
    }
}

/// A scale of its own for every row (or column) and block. Those of one row are near each other, so that sums are exact.
Codes distinct_scales(int blocks) {
    return [blocks](int outer, int block) {
        return unscaled - 32U + static_cast<std::uint32_t>(outer * blocks + block);
    };
}

TEST_P(MatrixProduct, TakesEveryScale) {
    Multiplication mma(GetParam());
    if (mma.info().scale_block == 0) return;
    const Codes scales = distinct_scales(mma.info().k / mma.info().scale_block);
    const auto zero = [](int, int) { return 0.0F; };
    const Codes a = [&](int row, int depth) { return distinct_code(row + 3 * depth, mma.type()); };
    const Codes b = [&](int depth, int col) { return distinct_code(2 * depth + col, mma.type()); };
    Scales of_a, of_b;
    of_a.a = of_b.b = scales;
    for (const Scales& chosen : {of_a, of_b, Scales{scales, scales}}) {
        mma.run(a, b, zero, chosen);
        mma.expect_product(a, b, zero, chosen);
    }
}

TEST_P(MatrixProduct, RoundsOnce) {
    Multiplication mma(GetParam());
    // Every product is far below C's last place; together they reach more than half of it.
    const std::uint32_t one = kernels::encode(1.0F, mma.type());
    const auto large = [](int, int) { return 0x1p26F; };
    const Codes a = [&](int, int) { return one; };
    mma.run(a, a, large);
    mma.expect_product(a, a, large);
}

INSTANTIATE_TEST_SUITE_P(Table, MatrixProduct, testing::ValuesIn(all_cells()), [](const auto& cell) {
    return std::string(to_string(cell.param.instruction)) + "_" +
           std::to_string(static_cast<int>(cell.param.unit));
});

TEST(MatrixModelFlavour, Cdna3ReadsFnuzCodes) {
    // 0x40 is 2 in OCP and 1 in FNUZ, 0x80 is −0 and NaN.
    const auto product = [](MatrixUnit unit, std::uint32_t code) {
        EmulatedMachine machine({unit, 64, 64, 16});
        EmulatedRegisters<std::uint32_t> a(64, 2), b(64, 2);
        EmulatedRegisters<float> c(64, 4);
        machine.each([&](int t) {
            for (int w = 0; w < 2; ++w) a.at(t, w) = b.at(t, w) = code * 0x01010101U;
            for (int r = 0; r < 4; ++r) c.at(t, r) = 0.0F;
        });
        machine.mma(mfma_16x16x32_fp8, c, 0, a, 0, b, 0);
        return c.at(0, 0);
    };
    EXPECT_EQ(product(MatrixUnit::cdna3, 0x40U), 32.0F);
    EXPECT_EQ(product(MatrixUnit::cdna4, 0x40U), 128.0F);
    EXPECT_TRUE(std::isnan(product(MatrixUnit::cdna3, 0x80U)));
    EXPECT_EQ(product(MatrixUnit::cdna4, 0x80U), 0.0F);
}

TEST(MatrixModelSubnormals, AreZeroOnCdna2) {
    const auto product = [](MatrixUnit unit, MatrixInstruction name, std::uint32_t code, std::uint32_t one) {
        EmulatedMachine machine({unit, 64, 64, 16});
        EmulatedRegisters<std::uint32_t> a(64, 2), b(64, 2);
        EmulatedRegisters<float> c(64, 4);
        machine.each([&](int t) {
            for (int w = 0; w < 2; ++w) {
                a.at(t, w) = code * 0x10001U;
                b.at(t, w) = one * 0x10001U;
            }
            for (int r = 0; r < 4; ++r) c.at(t, r) = 0.0F;
        });
        machine.mma(name, c, 0, a, 0, b, 0);
        return c.at(0, 0);
    };
    EXPECT_EQ(product(MatrixUnit::cdna2, mfma_16x16x16_f16, 0x0200U, 0x3C00U), 0.0F);
    EXPECT_EQ(product(MatrixUnit::cdna3, mfma_16x16x16_f16, 0x0200U, 0x3C00U), 0x1p-11F);
    EXPECT_EQ(product(MatrixUnit::cdna2, mfma_16x16x16_f16, 0x0400U, 0x3C00U), 0x1p-10F)
        << "the smallest normal";
    EXPECT_EQ(product(MatrixUnit::cdna2, mfma_16x16x16_bf16, 0x0040U, 0x3F80U), 0.0F);
}

TEST(MatrixModelTf32, DoesNotSeeTheLastThirteenBits) {
    EmulatedMachine machine({MatrixUnit::nvidia, 32, 32, 16});
    EmulatedRegisters<std::uint32_t> a(32, 4), b(32, 2);
    EmulatedRegisters<float> c(32, 4);
    machine.each([&](int t) {
        for (int w = 0; w < 4; ++w) a.at(t, w) = 0x3F801FFFU; // just above 1
        for (int w = 0; w < 2; ++w) b.at(t, w) = 0x3F800000U;
        for (int r = 0; r < 4; ++r) c.at(t, r) = 0.0F;
    });
    machine.mma(mma_16x8x8_tf32, c, 0, a, 0, b, 0);
    EXPECT_EQ(c.at(17, 2), 8.0F);
    EXPECT_EQ(machine.round_operand(0x3F801FFFU), 0x3F802000U);
    EXPECT_EQ(machine.round_operand(0x3F801000U), 0x3F802000U) << "ties go away from zero";
    EXPECT_EQ(machine.round_operand(0x3F800FFFU), 0x3F800000U);
    EXPECT_EQ(machine.round_operand(0xFF800000U), 0xFF800000U) << "infinity stays";
    EXPECT_EQ(EmulatedMachine({MatrixUnit::cdna3, 64, 64, 16}).round_operand(0x3F801FFFU), 0x3F801FFFU);
}

TEST(MatrixModelCopies, ThatDifferAreReported) {
    Multiplication mma({wmma_gfx11_16x16x16_f16, MatrixUnit::rdna3});
    const Codes ones = [](int, int) { return 0x3C00U; };
    mma.run(ones, ones, [](int, int) { return 0.0F; });
    mma.a().at(20, 3 + 2) ^= 0x10000U; // element 5 of lane 20, which lane 4 holds too
    try {
        mma.multiply();
        FAIL() << "the copies differ and nothing was reported";
    } catch (const EmulationError& error) {
        EXPECT_EQ(error.hazard(), Hazard::copies_differ);
        EXPECT_STREQ(error.what(),
                     "copies_differ: wmma_gfx11_16x16x16_f16: element 5 of lane 4 and element 5 of lane 20 "
                     "are the same element of A and hold 0x3c00 and 0x3c01");
    }
}

TEST(MatrixModelTable, AnotherRowIsAnotherProduct) {
    // The mistake that the facts and the forward cases must notice: the rows of C dealt out in another way.
    InstructionInfo wrong = instruction_info(mfma_16x16x16_f16);
    wrong.c_row = Axis{{0, 0, 0, 0, 1, 2}, {4, 8}};
    const MatrixModel right_model(instruction_info(mfma_16x16x16_f16), MatrixUnit::cdna3),
        wrong_model(wrong, MatrixUnit::cdna3);
    std::vector<std::uint32_t> a(128), b(128);
    std::vector<float> right(256), other(256);
    for (std::uint32_t i = 0; i < 128; ++i) a[i] = b[i] = 0x3C003C00U + i * 0x00020001U;
    const WaveRegisters<const std::uint32_t> left_operand{a.data(), 2}, right_operand{b.data(), 2};
    right_model.multiply({right.data(), 4}, left_operand, right_operand);
    wrong_model.multiply({other.data(), 4}, left_operand, right_operand);
    EXPECT_NE(right, other);
    wrong.c_row = Axis{{0, 0, 0, 0, 8, 16}, {1, 2}};
    EXPECT_THROW(MatrixModel(wrong, MatrixUnit::cdna3), EmulationError);
}

TEST(MatrixModelScales, AnotherMapIsAnotherProduct) {
    const InstructionInfo right = instruction_info(mfma_scale_32x32x64_fp4);
    constexpr int words = 5; // four of elements, one of scales
    std::vector<std::uint32_t> a(64 * words), b(64 * words);
    for (std::uint32_t lane = 0; lane < 64; ++lane)
        for (std::uint32_t w = 0; w < words; ++w)
            a[lane * words + w] = b[lane * words + w] = w < 4 ? 0x12345671U + lane * 0x11U : unscaled - lane;
    const auto product = [&](const InstructionInfo& row) {
        std::vector<float> c(64 * 16);
        MatrixModel(row, MatrixUnit::cdna4).multiply({c.data(), 16}, {a.data(), words}, {b.data(), words});
        return c;
    };
    InstructionInfo wrong = right;
    std::swap(wrong.a_scale.outer.lane[0], wrong.a_scale.outer.lane[1]);
    EXPECT_NE(product(right), product(wrong));
    wrong = right;
    std::swap(wrong.b_scale.k.lane[5], wrong.b_scale.k.lane[0]);
    EXPECT_NE(product(right), product(wrong));
    wrong.b_scale.k.lane[5] = 64;
    EXPECT_THAT([&] { product(wrong); },
                testing::ThrowsMessage<EmulationError>(testing::HasSubstr("has the scale of")));
}

TEST(MatrixModelScales, OfAllOnesAreNaN) {
    EmulatedMachine machine({MatrixUnit::cdna4, 64, 64, 16});
    EmulatedRegisters<std::uint32_t> a(64, 9), b(64, 9);
    EmulatedRegisters<float> c(64, 16);
    machine.each([&](int t) {
        for (int w = 0; w < 9; ++w) a.at(t, w) = b.at(t, w) = w < 8 ? 0x38383838U : unscaled;
        for (int r = 0; r < 16; ++r) c.at(t, r) = 0.0F;
    });
    a.at(7, 8) = 0xFFU;
    machine.mma(mfma_scale_32x32x64_fp8, c, 0, a, 0, b, 0);
    const InstructionInfo info = instruction_info(mfma_scale_32x32x64_fp8);
    machine.each([&](int t) {
        for (int r = 0; r < 16; ++r) EXPECT_EQ(std::isnan(c.at(t, r)), info.c_row.at(t, r) == 7);
    });
}

TEST(MatrixUnits, BeginAProductWithZerosAlone) {
    EmulatedMachine machine({MatrixUnit::rdna3, 64, 32, 16});
    EmulatedRegisters<std::uint32_t> a(64, 8), b(64, 8);
    EmulatedRegisters<float> c(64, 24);
    machine.each([&](int t) {
        for (int r = 0; r < 8; ++r) a.at(t, r) = b.at(t, r) = 0x3C003C00U; // ones
        for (int r = 0; r < 24; ++r) c.at(t, r) = r < 8 || r >= 16 ? 5.0F : 0.0F;
    });
    machine.mma(wmma_gfx11_16x16x16_f16, c, 8, a, 0, b, 0, true);
    machine.each([&](int t) {
        for (int r = 0; r < 24; ++r) EXPECT_EQ(c.at(t, r), r < 8 || r >= 16 ? 5.0F : 16.0F);
    });
    EXPECT_THROW(machine.mma(wmma_gfx11_16x16x16_f16, c, 8, a, 0, b, 0, true), EmulationError);
    c.at(63, 7) = c.at(63, 16) = 0.0F;
    EXPECT_THROW(machine.mma(wmma_gfx11_16x16x16_f16, c, 16, a, 0, b, 0, true), EmulationError)
        << "one of eight is 0";
}

TEST(MatrixUnits, RefuseTheInstructionsOfOthers) {
    EmulatedMachine machine({MatrixUnit::cdna2, 64, 64, 16});
    EmulatedRegisters<std::uint32_t> a(64, 8), b(64, 8);
    EmulatedRegisters<float> c(64, 16);
    EXPECT_THROW(machine.mma(mfma_32x32x16_f16, c, 0, a, 0, b, 0), EmulationError);
    EXPECT_THROW(machine.mma(mma_16x8x16_f16, c, 0, a, 0, b, 0), EmulationError);
    EXPECT_THROW(machine.mma(none, c, 0, a, 0, b, 0), EmulationError);
    EXPECT_THROW(machine.mma(mfma_scale_32x32x64_fp4, c, 0, a, 0, b, 0), EmulationError);
    EXPECT_NO_THROW(machine.mma(mfma_32x32x8_f16, c, 0, a, 0, b, 0));
    EXPECT_THROW(machine.mma(mfma_32x32x8_f16, c, 1, a, 0, b, 0), EmulationError) << "C leaves its registers";
}

} // namespace
} // namespace fmha::hip_target
