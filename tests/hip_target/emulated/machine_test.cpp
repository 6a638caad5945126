// The collective operations of the emulated machine that are not matrix products.

#include "kernels/programs/formats.hpp"
#include "kernels/targets/hip/bf16_rounding.hpp"
#include "kernels/targets/hip/emulated/machine.hpp"

#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>

namespace fmha::hip_target {
namespace {

EmulatedMachine nvidia(int waves = 2) {
    return EmulatedMachine({MatrixUnit::nvidia, 32 * waves, 32, 1024});
}

TEST(Exchange, MovesEveryRegisterAcrossTheMask) {
    const EmulatedMachine machine = nvidia();
    EmulatedRegisters<float> in(64, 2), out(64, 2);
    machine.each([&](int t) {
        in.at(t, 0) = static_cast<float>(t);
        in.at(t, 1) = static_cast<float>(1000 + t);
    });
    machine.exchange(out, in, 5);
    EXPECT_EQ(out.at(0, 0), 5.0F);
    EXPECT_EQ(out.at(6, 1), 1003.0F);
    EXPECT_EQ(out.at(63, 0), 58.0F) << "the second wave exchanges within itself";
    machine.exchange(in, in, 16);
    EXPECT_EQ(in.at(0, 0), 16.0F);
    EXPECT_EQ(in.at(16, 0), 0.0F);
}

TEST(Fold, CombinesEveryRegisterWithThatOfTheOtherLane) {
    const EmulatedMachine machine = nvidia();
    EmulatedRegisters<float> x(64, 2);
    machine.each([&](int t) {
        x.at(t, 0) = static_cast<float>(t);
        x.at(t, 1) = static_cast<float>(1000 + t);
    });
    machine.fold(x, 5, [](float a, float b) { return a + b; });
    EXPECT_EQ(x.at(0, 0), 5.0F);
    EXPECT_EQ(x.at(5, 0), 5.0F);
    EXPECT_EQ(x.at(6, 1), 2009.0F);
    EXPECT_EQ(x.at(63, 0), 121.0F) << "the second wave within itself";
    EXPECT_THROW(machine.fold(x, 32, [](float a, float) { return a; }), EmulationError);
}

TEST(Trade, ChangesTheUpperLanesLowRegisterForTheLowerLanesHighOne) {
    const EmulatedMachine machine({MatrixUnit::cdna4, 128, 64, 1024});
    EmulatedRegisters<std::uint32_t> x(128, 3);
    machine.each([&](int t) {
        for (int r = 0; r < 3; ++r) x.at(t, r) = static_cast<std::uint32_t>(1000 * r + t);
    });
    machine.trade(x, 0, 2, 32);
    EXPECT_EQ(x.at(5, 0), 5U);
    EXPECT_EQ(x.at(5, 2), 37U) << "the upper lane's low register";
    EXPECT_EQ(x.at(37, 0), 2005U) << "the lower lane's high one";
    EXPECT_EQ(x.at(37, 2), 2037U);
    EXPECT_EQ(x.at(69, 2), 101U) << "the second wave trades within itself";
    EXPECT_EQ(x.at(37, 1), 1037U);
    EXPECT_THROW(machine.trade(x, 0, 2, 64), EmulationError);
}

TEST(Exchange, StaysInTheWave) {
    const EmulatedMachine machine = nvidia();
    EmulatedRegisters<std::uint32_t> x(64, 1), small(64, 0);
    EXPECT_THROW(machine.exchange(x, x, 32), EmulationError);
    EXPECT_THROW(machine.exchange(small, x, 1), EmulationError);
}

/// LDS holds 32 lines of eight 16-bit elements: element c of line r is 100·r + c.
void write_lines(EmulatedMachine& machine) {
    machine.each([&](int t) {
        if (t >= 32) return;
        std::uint32_t words[4];
        for (std::uint32_t w = 0; w < 4; ++w) {
            const std::uint32_t low = static_cast<std::uint32_t>(100 * t) + 2 * w;
            words[w] = low | (low + 1) << 16U;
        }
        machine.lds_write<4>(t, 16 * t, words);
    });
    machine.barrier();
}

TEST(LoadMatrix, DealsOutFourMatrices) {
    EmulatedMachine machine = nvidia();
    write_lines(machine);
    EmulatedRegisters<std::uint32_t> out(64, 6);
    machine.load_matrix(
        out, 1, [](int t) { return 16 * (t % 32); }, false);
    // Lane 13 receives row 3, elements 2 and 3 of every matrix; matrix j is lines 8·j to 8·j + 7.
    EXPECT_EQ(out.at(13, 1), 302U | 303U << 16U);
    EXPECT_EQ(out.at(13, 2), 1102U | 1103U << 16U);
    EXPECT_EQ(out.at(32 + 31, 4), 3106U | 3107U << 16U);
    EXPECT_EQ(out.at(13, 0), 0xFFFFFFFFU) << "other registers stay as they were";
    EXPECT_EQ(out.at(13, 5), 0xFFFFFFFFU);
}

TEST(LoadMatrix, Transposes) {
    EmulatedMachine machine = nvidia();
    write_lines(machine);
    EmulatedRegisters<std::uint32_t> out(64, 4);
    machine.load_matrix(
        out, 0, [](int t) { return 16 * (t % 32); }, true);
    // Lane 13 receives column 3, rows 2 and 3.
    EXPECT_EQ(out.at(13, 0), 203U | 303U << 16U);
    EXPECT_EQ(out.at(13, 3), 2603U | 2703U << 16U);
}

TEST(LoadMatrix, TakesTheAddressOfEveryLane) {
    EmulatedMachine machine = nvidia(1);
    write_lines(machine);
    EmulatedRegisters<std::uint32_t> out(32, 4);
    machine.load_matrix(
        out, 0, [](int t) { return 16 * (31 - t); }, false);
    EXPECT_EQ(out.at(0, 0), 3100U | 3101U << 16U);
    EXPECT_EQ(out.at(4, 3), 600U | 601U << 16U);
    EXPECT_THROW(machine.load_matrix(
                     out, 0, [](int t) { return 8 * t; }, false),
                 EmulationError)
        << "misaligned";
    EXPECT_THROW(machine.load_matrix(
                     out, 1, [](int t) { return 16 * t; }, false),
                 EmulationError)
        << "five registers";
    EmulatedMachine other({MatrixUnit::rdna4, 32, 32, 1024});
    EXPECT_THROW(other.load_matrix(
                     out, 0, [](int) { return 0; }, false),
                 EmulationError);
}

TEST(LdsWords, AreWrittenAndReadInOrder) {
    EmulatedMachine machine = nvidia(1);
    const std::uint32_t words[4] = {0x03020100U, 0x07060504U, 2, 3};
    std::uint32_t back[4] = {};
    machine.lds_write<4>(0, 16, words);
    machine.lds_read<2>(0, 16, back);
    EXPECT_EQ(back[1], 0x07060504U);
    EXPECT_EQ(machine.lds_read_byte(0, 21), 5U);
    machine.lds_write<1>(0, 4, words);
    machine.lds_read<1>(0, 4, back);
    EXPECT_EQ(back[0], 0x03020100U);
    EXPECT_THROW(machine.lds_read<4>(0, 8, back), EmulationError);
}

TEST(ThreadOrder, MayBeTurnedRound) {
    const auto last = [](bool last_thread_first) {
        int seen = -1;
        EmulatedMachine({.unit = MatrixUnit::nvidia,
                         .threads = 64,
                         .wave_size = 32,
                         .lds_bytes = 16,
                         .last_thread_first = last_thread_first})
            .each([&](int thread) { seen = thread; });
        return seen;
    };
    EXPECT_EQ(last(false), 63);
    EXPECT_EQ(last(true), 0);
}

TEST(MachineShape, IsWholeWaves) {
    EXPECT_THROW(EmulatedMachine({MatrixUnit::nvidia, 48, 32, 16}), EmulationError);
    EXPECT_THROW(EmulatedMachine({MatrixUnit::nvidia, 0, 32, 16}), EmulationError);
}

TEST(GlobalRead, EndsWhereTheBlockSaysThatMemoryEnds) {
    alignas(16) const std::uint32_t memory[4] = {1, 2, 3, 4};
    for (int i = 0; i < 4; ++i) {
        std::uint32_t word = 9;
        EmulatedMachine::global_read<1>(0, reinterpret_cast<const char*>(memory), 4 * i, true, &word, 8);
        EXPECT_EQ(word, i < 2 ? memory[i] : 0U) << i;
    }
    std::uint32_t words[4] = {9, 9, 9, 9};
    EmulatedMachine::global_read<4>(0, reinterpret_cast<const char*>(memory), 0, true, words, 8);
    EXPECT_THAT(words, testing::ElementsAre(1U, 2U, 0U, 0U)) << "units look at every word by itself";
}

TEST(GlobalAccess, IsNamedWhenItIsNotAligned) {
    alignas(16) std::uint32_t memory[4] = {};
    const auto said = [](const std::function<void()>& access) {
        try {
            access();
        } catch (const EmulationError& error) {
            return std::string(error.what());
        }
        return std::string("nothing");
    };
    auto* const bytes = reinterpret_cast<char*>(memory);
    std::uint32_t words[4];
    EXPECT_THAT(said([&] { EmulatedMachine::global_read<4>(5, bytes, 4, true, words); }),
                testing::StartsWith("misaligned: global_read of 16 bytes by thread 5 at "));
    EXPECT_THAT(said([&] { EmulatedMachine::write_to_buffer(5, bytes, 2, true, 1, 16); }),
                testing::StartsWith("misaligned: write_to_buffer of 4 bytes by thread 5 at "));
    EXPECT_THAT(said([&] { EmulatedMachine::add_to_buffer(5, bytes, -4, true, 1.0F, 16); }),
                testing::StartsWith("out_of_range: add_to_buffer by thread 5 at offset -4"));
}

/// All bf16 numbers with fractions of a last place around its ends and its middle.
TEST(Bf16Rounding, WithoutATestIsThatOfTheFormat) {
    for (std::uint32_t upper = 0; upper < 0x10000U; ++upper)
        for (const std::uint32_t lower : {0x0000U, 0x0001U, 0x7FFFU, 0x8000U, 0x8001U, 0xFFFFU}) {
            const auto x = std::bit_cast<float>(upper << 16U | lower);
            if (std::isnan(x)) continue;
            ASSERT_EQ(round_upper_half(x) >> 16U, kernels::encode(x, ElementType::bf16))
                << std::hex << upper << lower;
        }
    EXPECT_TRUE(std::isnan(std::bit_cast<float>(round_upper_half(std::numeric_limits<float>::quiet_NaN()))));
}

TEST(Scalars, FollowTheContracts) {
    const EmulatedMachine machine = nvidia(1);
    EXPECT_EQ(machine.exp2(-std::numeric_limits<float>::infinity()), 0.0F);
    EXPECT_EQ(machine.exp2(-1.0F), 0.5F);
    EXPECT_EQ(machine.exp2(-127.0F), 0.0F) << "subnormal results are flushed";
    EXPECT_NEAR(machine.log(10.0F), 2.302585F, 1e-6F);
    const float values[4] = {1.0F, -2.0F, 448.0F, 1000.0F};
    EXPECT_EQ(machine.unpack(0xC000U, ElementType::fp16), -2.0F);
    EXPECT_EQ(machine.unpack(0x0001U, ElementType::fp16), 0x1p-24F);
    EXPECT_EQ(machine.unpack(0xC000U, ElementType::bf16), -2.0F);
    EXPECT_EQ(machine.unpack(0xC0000000U, ElementType::fp32), -2.0F);
    EXPECT_EQ(machine.pack(values, ElementType::fp16), 0xC0003C00U);
    EXPECT_EQ(machine.pack(values, ElementType::bf16), 0xC0003F80U);
    EXPECT_EQ(machine.pack(values, ElementType::fp8_ocp), 0x7E7EC038U);
    EXPECT_EQ(machine.pack(values, ElementType::fp32), 0x3F800000U);
}

TEST(Quotients, AreRoundedWithinTheRangeOfTheirTypeAlone) {
    const float values[8] = {1.0F, -2.0F, 3.0F, 0.5F, 0.0F, 1.5F, -1.0F, 12.0F};
    EXPECT_EQ(EmulatedMachine::pack_quotients(values, ElementType::fp16, 2.0F), 0xBC003800U);
    EXPECT_EQ(EmulatedMachine::pack_quotients(values, ElementType::fp8_ocp, 0x1p-7F), 0x687CF870U);
    EXPECT_THROW(static_cast<void>(EmulatedMachine::pack_quotients(values, ElementType::fp8_ocp, 0x1p-8F)),
                 EmulationError);
    EXPECT_EQ(EmulatedMachine::pack_quotients(values, ElementType::fp4, 2.0F), 0x792003A1U);
    EXPECT_THROW(static_cast<void>(EmulatedMachine::pack_quotients(values, ElementType::fp4, 1.0F)),
                 EmulationError);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float numbers[4] = {nan, nan, nan, nan};
    EXPECT_EQ(EmulatedMachine::pack_quotients(numbers, ElementType::fp8_ocp, 0x1p-8F) & 0x7FU, 0x7FU);
}

TEST(GlobalRead, IsZeroWhereNothingExists) {
    const std::uint32_t from[4] = {1, 2, 3, 4};
    const char* bytes = reinterpret_cast<const char*>(from);
    std::uint32_t words[2] = {7, 7};
    EmulatedMachine::global_read<2>(0, bytes, 8, true, words);
    EXPECT_EQ(words[0], 3U);
    EXPECT_EQ(words[1], 4U);
    EmulatedMachine::global_read<2>(0, bytes, 1 << 30, false, words);
    EXPECT_EQ(words[0], 0U);
    EXPECT_EQ(words[1], 0U);
}

TEST(SelectBytes, TakesThemFromBothWords) {
    EXPECT_EQ(EmulatedMachine::select_bytes(0x77665544U, 0x33221100U, 0x05040100U), 0x55441100U);
    EXPECT_EQ(EmulatedMachine::select_bytes(0x77665544U, 0x33221100U, 0x03020706U), 0x33227766U);
}

TEST(UnwrittenRegisters, AreNotNumbers) {
    const EmulatedRegisters<float> x(1, 2);
    EXPECT_TRUE(std::isnan(x.at(0, 1)));
    EXPECT_THROW(static_cast<void>(x.at(0, 2)), EmulationError);
    EXPECT_THROW(static_cast<void>(x.at(1, 0)), EmulationError);
}

} // namespace
} // namespace fmha::hip_target
