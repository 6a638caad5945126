// Correct kernels raise no alarm: random valid problems over all features and data sets.

#include "tests/harness/no_alarm.hpp"

namespace fmha::harness::test {
namespace {

TEST(RandomProblems, HundredRaiseNoAlarm) {
    // One of them alone is run by the program that takes seeds from outside.
    expect_no_alarm({1, 100}, "harness_thousand_test");
}

TEST(RandomSeeds, ComeFromTheClockUnlessTheEnvironmentSays) {
    EXPECT_EQ(seeds_to_try(nullptr, nullptr, 5, 1000).first, 5U);
    EXPECT_EQ(seeds_to_try(nullptr, nullptr, 6, 1000).first, 6U);
    EXPECT_EQ(seeds_to_try(nullptr, nullptr, 6, 1000).count, 1000U);
    const SeedRange again = seeds_to_try("18446744073709551615", "1", 6, 1000);
    EXPECT_EQ(again.first, ~std::uint64_t{0});
    EXPECT_EQ(again.count, 1U);
    EXPECT_EQ(replay_command({7, 1}, "harness_thousand_test"),
              "FMHA_SEED=7 FMHA_SEEDS=1 build/host/bin/harness_thousand_test");
    for (const char* wrong : {"", "x", "-1", "7x", "18446744073709551616"})
        EXPECT_THROW(seeds_to_try(wrong, nullptr, 6, 1000), InputError) << wrong;
}

TEST(RandomSeeds, AnAlarmSaysHowItIsRunAgain) {
    for (const std::uint64_t seed : {std::uint64_t{3}, std::uint64_t{4}}) {
        const auto results = run_case(random_case(seed), NoKernels(), {});
        ASSERT_EQ(results.size(), 1U);
        const std::string text = alarm(seed, results[0], "harness_thousand_test");
        EXPECT_NE(text.find("refused_unexpectedly"), std::string::npos) << text;
        EXPECT_TRUE(text.ends_with("\n  repeat   " + replay_command({seed, 1}, "harness_thousand_test")))
            << text;
    }
}

} // namespace
} // namespace fmha::harness::test
