// Asynchronous copies as AMD's units make them, reads that transpose, and the images in LDS that fit both.

#include "kernels/targets/hip/emulated/machine.hpp"
#include "kernels/targets/hip/image.hpp"
#include "kernels/targets/hip/register_copies.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <set>

namespace fmha::hip_target {
namespace {

EmulatedMachine cdna(MatrixUnit unit = MatrixUnit::cdna3, int waves = 2) {
    return EmulatedMachine({unit, 64 * waves, 64, 8192});
}

Hazard hazard_of(const std::function<void()>& f) {
    try {
        f();
    } catch (const EmulationError& error) {
        return error.hazard();
    }
    ADD_FAILURE() << "nothing was wrong";
    return Hazard::misaligned;
}

/// 1024 words: word i is i + 1.
struct Memory {
    alignas(16) std::uint32_t words[1024];
    Memory() { std::iota(std::begin(words), std::end(words), 1U); }
    const char* bytes() const { return reinterpret_cast<const char*>(words); }
};

TEST(StepCopies, FillConsecutiveUnitsFromAnywhere) {
    const Memory memory;
    EmulatedMachine machine = cdna();
    machine.each([&](int t) {
        machine.copy_async<1>(t, 512 + 4 * t, memory.bytes(), 4 * (127 - t), t % 2 == 0 ? 4 : 0);
    });
    machine.commit_copies();
    machine.wait_copies(0);
    machine.barrier();
    machine.each([&](int t) {
        std::uint32_t word = 0;
        machine.lds_read<1>(t, 512 + 4 * t, &word);
        EXPECT_EQ(word, t % 2 == 0 ? static_cast<std::uint32_t>(128 - t) : 0U) << t;
    });
}

TEST(StepCopies, EndWhereTheBlockSaysThatMemoryEnds) {
    const Memory memory;
    EmulatedMachine machine = cdna();
    machine.each([&](int t) { machine.copy_async<1>(t, 4 * t, memory.bytes(), 4 * t, 4, 4 * 100); });
    machine.commit_copies();
    machine.wait_copies(0);
    machine.barrier();
    machine.each([&](int t) {
        std::uint32_t word = 0;
        machine.lds_read<1>(t, 4 * t, &word);
        EXPECT_EQ(word, t < 100 ? static_cast<std::uint32_t>(t + 1) : 0U) << t;
    });
}

TEST(StepCopies, OfLinesBelowTheFirstGoBehindIt) {
    const Memory memory;
    EmulatedMachine machine = cdna();
    const auto place = EmulatedMachine::copy_place<1>(256);
    machine.each([&](int t) {
        for (int line = 0; line < 2; ++line)
            machine.copy_below<1>(t, place, 512 * line, memory.bytes(), 4 * (t ^ 1), 2000 * line, t != 77);
    });
    machine.commit_copies();
    machine.wait_copies(0);
    machine.barrier();
    for (int line = 0; line < 2; ++line)
        machine.each([&](int t) {
            std::uint32_t word = 1;
            machine.lds_read<1>(t, 256 + 512 * line + 4 * t, &word);
            EXPECT_EQ(word, t == 77 ? 0U : static_cast<std::uint32_t>((t ^ 1) + 1 + 500 * line)) << t;
        });
}

TEST(StepCopies, OfLanesWithAddressesOfTheirOwn) {
    const Memory memory;
    const auto copy = [&](MatrixUnit unit, auto from, int bytes_apart) {
        EmulatedMachine machine = cdna(unit);
        machine.each([&](int t) {
            machine.copy_from<4>(t, EmulatedMachine::copy_place<4>(256) + bytes_apart * t, 2048, from(t));
        });
        machine.commit_copies();
        machine.wait_single_copies(0);
        machine.barrier();
        machine.each([&](int t) {
            std::uint32_t word = 0;
            machine.lds_read<1>(t, 256 + 2048 + 16 * t, &word);
            EXPECT_EQ(word, static_cast<std::uint32_t>(4 * (t * 37 % 128) + 1)) << t;
        });
    };
    const auto anywhere = [&](int t) { return memory.bytes() + 16 * (t * 37 % 128); };
    copy(MatrixUnit::cdna4, anywhere, 0);
    EXPECT_EQ(hazard_of([&] { copy(MatrixUnit::cdna4, anywhere, 16); }), Hazard::copy_scattered)
        << "the units of a wave still follow one another";
    EXPECT_EQ(hazard_of([&] {
                  copy(
                      MatrixUnit::cdna4, [&](int t) { return anywhere(t) + 4; }, 0);
              }),
              Hazard::misaligned);
    EXPECT_EQ(hazard_of([&] { copy(MatrixUnit::cdna3, anywhere, 0); }), Hazard::unknown_operation)
        << "single words only";
    EXPECT_EQ(hazard_of([&] { copy(MatrixUnit::cdna2, anywhere, 0); }), Hazard::unknown_operation);
}

TEST(Parts, OfLinesThatOverlapAreReadByElement) {
    Memory memory;
    kernels::Matrix matrix;
    matrix.tensor.data = memory.words;
    matrix.tensor.col_stride = 1;
    matrix.rows = {4, 4, 4};
    matrix.cols = {64, 64, 64};
    for (const std::int64_t stride : {0, 32, 64, 128}) {
        matrix.tensor.row_stride = stride;
        const Part part{0, 0, 8, 0, 0, 8, 64};
        EXPECT_EQ(part.window(LineView::of(matrix, ElementType::fp16)).granule, stride < 64 ? 0 : 16)
            << stride;
    }
}

/// Machines without scalar comparisons of 64 bits count lines by the halves of their number.
TEST(Parts, HaveTheSameLinesByHalves) {
    constexpr std::int64_t far = std::int64_t{1} << 32;
    for (const std::int64_t lines : {std::int64_t{0}, std::int64_t{100}, far - 1, far, far + 3})
        for (const std::int64_t line0 :
             {std::int64_t{0}, std::int64_t{64}, std::int64_t{99}, std::int64_t{100}, std::int64_t{128},
              far - 64, far, far + 128, 2 * far}) {
            kernels::Matrix matrix;
            matrix.tensor.row_stride = 64;
            matrix.rows.read = lines;
            matrix.cols.read = 64;
            Part part;
            part.line0 = line0;
            part.tile_lines = 64;
            const LineView from = LineView::of(matrix, ElementType::fp16);
            EXPECT_EQ(part.window<true>(from).lines, part.window(from).lines) << lines << " from " << line0;
        }
}

TEST(StepCopies, MayLandAtAnyTimeBeforeTheyAreAwaited) {
    const Memory memory;
    EmulatedMachine machine = cdna();
    const auto copy = [&] {
        machine.each([&](int t) { machine.copy_async<1>(t, 4 * t, memory.bytes(), 4 * t, 4); });
        machine.commit_copies();
    };
    std::uint32_t word = 0;
    copy();
    EXPECT_EQ(hazard_of([&] { machine.lds_read<1>(0, 0, &word); }), Hazard::copy_not_awaited);
    EXPECT_EQ(hazard_of([&] { machine.lds_write<1>(0, 0, &word); }), Hazard::copy_overwritten);
    EXPECT_EQ(hazard_of(copy), Hazard::copy_overwritten);
    machine.wait_copies(0);
    EXPECT_EQ(hazard_of([&] { machine.lds_read<1>(70, 0, &word); }), Hazard::copy_not_visible);
}

TEST(StepCopies, OfAWaveFollowOneAnother) {
    const Memory memory;
    const auto commit_of = [&](auto address, auto from, auto takes_part) {
        EmulatedMachine machine = cdna();
        machine.each([&](int t) {
            if (takes_part(t)) machine.copy_async<1>(t, address(t), from(t), 0, 4);
        });
        machine.commit_copies();
    };
    const auto here = [](int t) { return 4 * t; };
    const auto base = [&](int) { return memory.bytes(); };
    const auto all = [](int) { return true; };
    EXPECT_EQ(hazard_of([&] { commit_of([](int t) { return 4 * (t ^ 1); }, base, all); }),
              Hazard::copy_scattered);
    EXPECT_EQ(hazard_of([&] { commit_of([](int t) { return 8 * t; }, base, all); }), Hazard::copy_scattered)
        << "padding between the units of a wave";
    EXPECT_EQ(hazard_of([&] { commit_of(here, base, [](int t) { return t != 77; }); }),
              Hazard::copy_scattered)
        << "a lane that takes no part";
    EXPECT_EQ(hazard_of([&] {
                  commit_of(
                      here, [&](int t) { return memory.bytes() + t / 32 * 16; }, all);
              }),
              Hazard::copy_scattered)
        << "two bases in a wave";
    // Waves are independent: one of them may stay out, or copy to somewhere else.
    commit_of(here, base, [](int t) { return t < 64; });
    commit_of([](int t) { return 4 * t + t / 64 * 1024; }, base, all);
}

template <int words>
struct Unit {};

TEST(StepCopies, AreOfWholeUnitsThatTheMachineKnows) {
    const Memory memory;
    const auto copy = [&]<int words>(MatrixUnit unit, Unit<words>, int offset, int bytes) {
        EmulatedMachine machine = cdna(unit);
        machine.copy_async<words>(0, 0, memory.bytes(), offset, bytes);
    };
    copy(MatrixUnit::cdna4, Unit<4>{}, 16, 16);
    copy(MatrixUnit::cdna4, Unit<1>{}, 4, 4);
    copy(MatrixUnit::cdna2, Unit<1>{}, -4, 0);
    copy(MatrixUnit::nvidia, Unit<1>{}, 4, 4);
    const auto hazard = [&](auto... arguments) { return hazard_of([&] { copy(arguments...); }); };
    EXPECT_EQ(hazard(MatrixUnit::cdna3, Unit<4>{}, 0, 16), Hazard::unknown_operation);
    EXPECT_EQ(hazard(MatrixUnit::cdna4, Unit<2>{}, 0, 8), Hazard::unknown_operation);
    EXPECT_EQ(hazard(MatrixUnit::rdna4, Unit<1>{}, 0, 4), Hazard::unknown_operation);
    EXPECT_EQ(hazard(MatrixUnit::nvidia, Unit<2>{}, 0, 8), Hazard::unknown_operation);
    EXPECT_EQ(hazard(MatrixUnit::cdna4, Unit<4>{}, 0, 8), Hazard::out_of_range);
    EXPECT_EQ(hazard(MatrixUnit::cdna4, Unit<4>{}, 8, 16), Hazard::misaligned);
    EXPECT_EQ(hazard(MatrixUnit::cdna3, Unit<1>{}, -4, 4), Hazard::out_of_range);
}

// The manual of CDNA 4, in numbers of its own: within sixteen lanes, lane l receives halfword l % 4 of lanes l / 4,
// l / 4 + 4, l / 4 + 8 and l / 4 + 12, or byte l % 8 of lanes l / 8, l / 8 + 2, … l / 8 + 14.
TEST(TransposingRead, DealsOutColumns) {
    for (const int size : {1, 2}) {
        EmulatedMachine machine = cdna(MatrixUnit::cdna4);
        machine.each([&](int t) {
            // Halfword h of thread t is 16·t + h, byte b of lane l is 16·l + b.
            const auto id = static_cast<std::uint32_t>(t);
            std::uint32_t words[2];
            for (std::uint32_t w = 0; w < 2; ++w)
                words[w] = size == 2 ? (16 * id + 2 * w) | (16 * id + 2 * w + 1) << 16U
                                     : 0x03020100U + 0x04040404U * w + 0x10101010U * (id % 16);
            machine.lds_write<2>(t, 16 * t, words);
        });
        machine.barrier();
        EmulatedRegisters<std::uint32_t> out(128, 4);
        machine.read_transposed(out, 1, size == 2 ? ElementType::bf16 : ElementType::fp8_ocp,
                                [](int t) { return 16 * t; });
        for (int t = 0; t < 128; ++t) {
            const int l = t % 16, group = t - l, elements = 8 / size;
            for (int e = 0; e < elements; ++e) {
                const int bits = 8 * size, at = e * bits % 32;
                const std::uint32_t received =
                    out.at(t, 1 + e * bits / 32) >> static_cast<unsigned>(at) & (size == 2 ? 0xFFFFU : 0xFFU);
                const int expected =
                    size == 2 ? 16 * (group + l / 4 + 4 * e) + l % 4 : 16 * (l / 8 + 2 * e) + l % 8;
                EXPECT_EQ(received, static_cast<std::uint32_t>(expected))
                    << "thread " << t << ", element " << e;
            }
            EXPECT_EQ(out.at(t, 0), 0xFFFFFFFFU) << "other registers stay as they were";
        }
    }
}

TEST(TransposingRead, ExistsOnCdna4ForSmallElements) {
    const auto read = [](MatrixUnit unit, ElementType type, int step) {
        EmulatedMachine machine = cdna(unit);
        const std::uint32_t words[4] = {};
        machine.each([&](int t) { machine.lds_write<4>(t, 16 * t, words); });
        machine.barrier();
        EmulatedRegisters<std::uint32_t> out(128, 2);
        machine.read_transposed(out, 0, type, [&](int t) { return step * t; });
    };
    read(MatrixUnit::cdna4, ElementType::fp16, 16);
    EXPECT_EQ(hazard_of([&] { read(MatrixUnit::cdna3, ElementType::fp16, 16); }), Hazard::unknown_operation);
    EXPECT_EQ(hazard_of([&] { read(MatrixUnit::cdna4, ElementType::fp32, 16); }), Hazard::unknown_operation);
    EXPECT_EQ(hazard_of([&] { read(MatrixUnit::cdna4, ElementType::fp16, 4); }), Hazard::misaligned);
}

TEST(TransposingRead, NamesAndDealsOutEveryElementOnce) {
    for (const ElementType type : {ElementType::fp16, ElementType::bf16, ElementType::bf8_ocp}) {
        const TransposingRead read = transposing_read(type);
        std::set<std::pair<int, int>> named, received;
        for (int lane = 0; lane < transposing_lanes; ++lane)
            for (int e = 0; e < 64 / element_bits(type); ++e) {
                named.emplace(read.source_row.at(lane, e), read.source_col.at(lane, e));
                received.emplace(read.row.at(lane, e), read.col.at(lane, e));
            }
        EXPECT_EQ(named.size(), static_cast<std::size_t>(read.rows * transposing_lanes));
        EXPECT_EQ(named, received);
    }
}

struct Swizzle {
    int lines, elements, banks, width;
};
class SwizzledImage : public testing::TestWithParam<Swizzle> {};

TEST_P(SwizzledImage, KeepsUnitsWholeAndInTheirLine) {
    const auto [lines, elements, banks, width] = GetParam();
    const Image image = Image::swizzled(lines, elements, ElementType::fp16, banks, width);
    EXPECT_EQ(image.bytes(), lines * elements * 2);
    for (int line = 0; line < lines; ++line) {
        std::set<int> places;
        for (int unit = 0; unit < elements * 2; unit += 16) {
            const int place = image.at(line, unit);
            EXPECT_EQ(place % 16, 0);
            EXPECT_EQ(place / image.line_bytes, line);
            EXPECT_EQ(image.at(line, unit + 6), place + 6);
            places.insert(place);
        }
        EXPECT_EQ(places.size(), static_cast<std::size_t>(elements * 2 / 16));
    }
}

TEST_P(SwizzledImage, PutsWhatIsReadTogetherOnDifferentBanks) {
    const auto [lines, elements, banks, width] = GetParam();
    const Image image = Image::swizzled(lines, elements, ElementType::fp16, banks, width);
    const int together = banks / width;
    for (int first = 0; first + together <= lines; first += together)
        for (int unit = 0; unit + width <= elements * 2 / 16; unit += width) {
            std::set<int> used;
            for (int line = first; line < first + together; ++line)
                for (int u = unit; u < unit + width; ++u) used.insert(image.at(line, 16 * u) / 16 % banks);
            EXPECT_EQ(used.size(), static_cast<std::size_t>(banks)) << "line " << first << ", unit " << unit;
        }
}

TEST(PlainImage, CollidesWhereTheSwizzledOneDoesNot) {
    const Image plain{0, 64, 128};
    std::set<int> used;
    for (int line = 0; line < 8; ++line) used.insert(plain.at(line, 16) / 16 % 8);
    EXPECT_EQ(used.size(), 2U) << "the check above can fail";
}

// Keys of k0 = 16, 32, 64 and 128 elements; values by key of 64 and 128 channels, in runs of 64 and 32 bytes.
INSTANTIATE_TEST_SUITE_P(Tiles, SwizzledImage,
                         testing::Values(Swizzle{64, 16, 8, 1}, Swizzle{128, 32, 8, 1},
                                         Swizzle{128, 32, 16, 1}, Swizzle{32, 64, 16, 1},
                                         Swizzle{32, 128, 16, 1}, Swizzle{32, 128, 16, 4},
                                         Swizzle{32, 64, 16, 4}, Swizzle{32, 64, 16, 2},
                                         Swizzle{32, 128, 16, 2}));

} // namespace
} // namespace fmha::hip_target
