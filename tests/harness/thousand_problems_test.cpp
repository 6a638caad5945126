// The same with seeds that nobody has looked at: today's date decides them, and a failure names its seed.

#include "tests/harness/no_alarm.hpp"

#include <ctime>

namespace fmha::harness::test {
namespace {

TEST(RandomProblems, ThousandFreshOnesRaiseNoAlarm) {
    constexpr std::uint64_t seconds_of_a_day = 86'400, spread = 1'000'003;
    expect_no_alarm(static_cast<std::uint64_t>(std::time(nullptr)) / seconds_of_a_day * spread, 1000);
}

} // namespace
} // namespace fmha::harness::test
