// Correct kernels raise no alarm: random valid problems over all features and data sets.

#include "tests/harness/no_alarm.hpp"

namespace fmha::harness::test {
namespace {

TEST(RandomProblems, HundredRaiseNoAlarm) {
    expect_no_alarm(1, 100);
}

} // namespace
} // namespace fmha::harness::test
