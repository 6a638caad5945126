// The same with seeds that nobody has looked at: the clock decides them, and the output says how they are run again.

#include "tests/harness/no_alarm.hpp"

#include <chrono>
#include <cstdlib>
#include <iostream>

namespace fmha::harness::test {
namespace {

TEST(RandomProblems, ThousandFreshOnesRaiseNoAlarm) {
    constexpr const char* program = "harness_thousand_test";
    const auto clock = std::chrono::system_clock::now().time_since_epoch();
    const auto microseconds = std::chrono::duration_cast<std::chrono::microseconds>(clock).count();
    const SeedRange seeds = seeds_to_try(std::getenv("FMHA_SEED"), std::getenv("FMHA_SEEDS"),
                                         static_cast<std::uint64_t>(microseconds), 1000);
    ASSERT_GT(seeds.count, 0U);
    std::cout << "seeds " << seeds.first << " to " << seeds.first + (seeds.count - 1)
              << "; to run them again: " << replay_command(seeds, program) << '\n';
    expect_no_alarm(seeds, program);
}

} // namespace
} // namespace fmha::harness::test
