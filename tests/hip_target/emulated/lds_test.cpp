// Every hazard that the emulated LDS knows, seen red, beside the ordered program that is green.

#include "kernels/targets/hip/emulated/lds.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <optional>

namespace fmha::hip_target {
namespace {

constexpr int wave_size = 32, threads = 64, other_wave = 40;

class LdsTest : public testing::Test {
  protected:
    void write(int thread, std::int64_t address) {
        const std::uint32_t word = 0x01020304U;
        lds_.write(thread, address, &word, 4, "lds_write");
    }
    std::uint32_t read(int thread, std::int64_t address) {
        std::uint32_t word = 0;
        lds_.read(thread, address, &word, 4, "lds_read");
        return word;
    }
    std::optional<Hazard> hazard_of(const std::function<void()>& program) {
        try {
            program();
        } catch (const EmulationError& error) {
            message_ = error.what();
            return error.hazard();
        }
        return std::nullopt;
    }

    Lds lds_{256, threads, wave_size};
    std::string message_;
    alignas(16) std::array<std::uint32_t, 4> source_{11, 12, 13, 14};
};

TEST_F(LdsTest, ABarrierOrdersWaves) {
    EXPECT_EQ(hazard_of([&] {
                  write(0, 0);
                  lds_.barrier();
                  EXPECT_EQ(read(other_wave, 0), 0x01020304U);
                  lds_.barrier();
                  write(other_wave, 0);
                  lds_.barrier();
                  write(1, 0);
              }),
              std::nullopt)
        << message_;
}

TEST_F(LdsTest, AWaveBarrierOrdersLanesOfAWave) {
    EXPECT_EQ(hazard_of([&] {
                  write(0, 0);
                  lds_.wave_barrier();
                  read(1, 0);
                  lds_.wave_barrier();
                  write(2, 0);
              }),
              std::nullopt)
        << message_;
}

TEST_F(LdsTest, AThreadIsOrderedWithItself) {
    EXPECT_EQ(hazard_of([&] {
                  write(0, 0);
                  read(0, 0);
                  write(0, 0);
                  read(0, 0);
              }),
              std::nullopt)
        << message_;
}

TEST_F(LdsTest, ReadAfterWrite) {
    write(3, 16);
    EXPECT_EQ(hazard_of([&] { read(other_wave, 16); }), Hazard::read_after_write);
    EXPECT_EQ(message_,
              "read_after_write: lds_read by thread 40 (wave 1) in epoch 0 meets LDS byte 16, which was "
              "written without a barrier since, by thread 3 (wave 0) in epoch 0");
}

TEST_F(LdsTest, AWaveBarrierIsNotEnoughBetweenWaves) {
    write(3, 16);
    lds_.wave_barrier();
    EXPECT_EQ(hazard_of([&] { read(other_wave, 16); }), Hazard::read_after_write);
}

TEST_F(LdsTest, WriteAfterRead) {
    write(3, 16);
    lds_.barrier();
    read(3, 16);
    EXPECT_EQ(hazard_of([&] { write(other_wave, 16); }), Hazard::write_after_read);
    EXPECT_THAT(message_, testing::HasSubstr("which was read without a barrier since, by thread 3 (wave 0)"));
}

TEST_F(LdsTest, WriteAfterAReadThatIsNotTheLast) {
    write(3, 16);
    lds_.barrier();
    read(other_wave, 16);
    lds_.wave_barrier();
    read(3, 16);
    lds_.wave_barrier();
    EXPECT_EQ(hazard_of([&] { write(3, 16); }), Hazard::write_after_read);
}

TEST_F(LdsTest, WriteAfterWrite) {
    write(3, 16);
    EXPECT_EQ(hazard_of([&] { write(other_wave, 16); }), Hazard::write_after_write);
}

TEST_F(LdsTest, LanesOfAWaveNeedAWaveBarrier) {
    write(3, 16);
    EXPECT_EQ(hazard_of([&] { read(4, 16); }), Hazard::wave_order);
    EXPECT_EQ(hazard_of([&] { write(4, 16); }), Hazard::wave_order);
    lds_.wave_barrier();
    read(4, 16);
    EXPECT_EQ(hazard_of([&] { write(3, 16); }), Hazard::wave_order);
    read(3, 16);
    EXPECT_EQ(hazard_of([&] { write(3, 16); }), Hazard::wave_order) << "lane 4 has read it too";
}

TEST_F(LdsTest, AReadForTheWaveIsOneByOtherLanes) {
    write(3, 16);
    std::uint32_t word = 0;
    EXPECT_EQ(hazard_of([&] { lds_.read_for_wave(3, 16, &word, 4, "load_matrix"); }), Hazard::wave_order);
    lds_.wave_barrier();
    lds_.read_for_wave(3, 16, &word, 4, "load_matrix");
    EXPECT_EQ(hazard_of([&] { write(3, 16); }), Hazard::wave_order);
    lds_.wave_barrier();
    EXPECT_EQ(hazard_of([&] { write(3, 16); }), std::nullopt);
}

TEST_F(LdsTest, UnwrittenRead) {
    write(0, 0);
    EXPECT_EQ(hazard_of([&] { read(0, 4); }), Hazard::unwritten_read);
    std::array<std::uint32_t, 2> words{};
    EXPECT_EQ(hazard_of([&] { lds_.read(0, 0, words.data(), 8, "lds_read"); }), Hazard::unwritten_read)
        << "half of it was written";
    lds_.begin();
    EXPECT_EQ(hazard_of([&] { read(0, 0); }), Hazard::unwritten_read) << "it was another block's";
}

TEST_F(LdsTest, BytesOfAWordHaveHistoriesOfTheirOwn) {
    const auto write_byte = [&](int thread, std::int64_t address) {
        return hazard_of([&] { lds_.write(thread, address, "x", 1, "lds_write"); });
    };
    const auto read_byte = [&](int thread, std::int64_t address) {
        std::uint8_t byte = 0;
        return hazard_of([&] { lds_.read(thread, address, &byte, 1, "lds_read_byte"); });
    };
    write(3, 16);
    write(3, 20);
    lds_.barrier();
    EXPECT_EQ(write_byte(3, 21), std::nullopt);
    EXPECT_EQ(hazard_of([&] { read(4, 20); }), Hazard::wave_order);
    EXPECT_THAT(message_, testing::HasSubstr("meets LDS byte 21,"));
    EXPECT_EQ(read_byte(3, 17), std::nullopt);
    EXPECT_EQ(read_byte(other_wave, 18), std::nullopt);
    EXPECT_EQ(write_byte(3, 17), std::nullopt);
    EXPECT_EQ(write_byte(other_wave, 18), std::nullopt);
    EXPECT_EQ(hazard_of([&] { write(3, 16); }), Hazard::write_after_write);
    EXPECT_THAT(message_, testing::HasSubstr("meets LDS byte 18,"));
    lds_.barrier();
    EXPECT_EQ(hazard_of([&] { read(4, 16); }), std::nullopt);
    lds_.begin();
    EXPECT_EQ(write_byte(3, 17), std::nullopt);
    EXPECT_EQ(hazard_of([&] { read(3, 16); }), Hazard::unwritten_read);
    EXPECT_THAT(message_, testing::HasSubstr("meets LDS byte 16,"));
}

TEST_F(LdsTest, OutOfRange) {
    EXPECT_EQ(hazard_of([&] { write(0, 256); }), Hazard::out_of_range);
    EXPECT_EQ(hazard_of([&] { read(0, -4); }), Hazard::out_of_range);
    EXPECT_EQ(hazard_of([&] { write(threads, 0); }), Hazard::out_of_range);
    EXPECT_EQ(hazard_of([&] { lds_.copy_async(0, 248, source_.data(), 16); }), Hazard::out_of_range);
    EXPECT_EQ(hazard_of([&] { lds_.copy_async(0, 0, source_.data(), 17); }), Hazard::out_of_range);
}

TEST_F(LdsTest, Misaligned) {
    EXPECT_EQ(hazard_of([&] { write(0, 6); }), Hazard::misaligned);
    EXPECT_EQ(hazard_of([&] { lds_.copy_async(0, 8, source_.data(), 16); }), Hazard::misaligned);
    EXPECT_EQ(hazard_of([&] { lds_.copy_async(0, 0, source_.data() + 1, 12); }), Hazard::misaligned);
    EXPECT_EQ(hazard_of([&] { lds_.copy_async(0, 0, source_.data() + 1, 0); }), std::nullopt)
        << "nothing is read from there";
}

TEST_F(LdsTest, ACopyLandsWhenItIsWaitedFor) {
    lds_.copy_async(0, 0, source_.data(), 12);
    lds_.commit_copies();
    lds_.wait_copies(0);
    EXPECT_EQ(read(0, 4), 12U);
    EXPECT_EQ(read(0, 12), 0U) << "bytes that do not exist are 0";
    lds_.barrier();
    EXPECT_EQ(read(other_wave, 8), 13U);
}

TEST_F(LdsTest, OnlyOldGroupsLand) {
    lds_.copy_async(0, 0, source_.data(), 16);
    lds_.commit_copies();
    lds_.copy_async(0, 16, source_.data(), 16);
    lds_.commit_copies();
    lds_.wait_copies(1);
    EXPECT_EQ(read(0, 0), 11U);
    EXPECT_EQ(hazard_of([&] { read(0, 16); }), Hazard::copy_not_awaited);
    lds_.commit_copies(); // an empty group counts
    lds_.wait_copies(1);
    EXPECT_EQ(read(0, 16), 11U);
}

TEST_F(LdsTest, CopyNotAwaited) {
    lds_.copy_async(0, 0, source_.data(), 16);
    EXPECT_EQ(hazard_of([&] { read(0, 0); }), Hazard::copy_not_awaited);
    lds_.commit_copies();
    lds_.barrier();
    EXPECT_EQ(hazard_of([&] { read(0, 0); }), Hazard::copy_not_awaited)
        << "a barrier does not wait for copies";
    lds_.copy_async(0, 16, source_.data(), 16);
    lds_.wait_copies(0);
    EXPECT_EQ(hazard_of([&] { read(0, 16); }), Hazard::copy_not_awaited) << "it is in no group";
}

TEST_F(LdsTest, CopyNotVisible) {
    lds_.copy_async(0, 0, source_.data(), 16);
    lds_.commit_copies();
    lds_.barrier();
    lds_.wait_copies(0);
    EXPECT_EQ(hazard_of([&] { read(other_wave, 0); }), Hazard::copy_not_visible)
        << "the barrier came before the wait";
    EXPECT_EQ(hazard_of([&] { read(1, 0); }), Hazard::copy_not_visible);
    lds_.wave_barrier();
    EXPECT_EQ(hazard_of([&] { read(1, 0); }), std::nullopt);
    EXPECT_EQ(hazard_of([&] { read(other_wave, 0); }), Hazard::copy_not_visible);
}

TEST_F(LdsTest, CopyOverwritten) {
    lds_.copy_async(0, 0, source_.data(), 16);
    EXPECT_EQ(hazard_of([&] { write(0, 4); }), Hazard::copy_overwritten);
    EXPECT_EQ(hazard_of([&] { lds_.copy_async(0, 0, source_.data(), 16); }), Hazard::copy_overwritten);
}

TEST_F(LdsTest, ACopyOverwritesNothingThatIsStillRead) {
    write(other_wave, 0);
    lds_.barrier();
    read(other_wave, 0);
    EXPECT_EQ(hazard_of([&] { lds_.copy_async(0, 0, source_.data(), 16); }), Hazard::write_after_read);
}

TEST_F(LdsTest, EveryHazardHasAName) {
    EXPECT_EQ(to_string(Hazard::copy_not_visible), "copy_not_visible");
    EXPECT_EQ(EnumTable<Hazard>::names.size(), static_cast<std::size_t>(Hazard::deadlock) + 1);
}

} // namespace
} // namespace fmha::hip_target
