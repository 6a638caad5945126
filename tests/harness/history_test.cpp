// The course of a case or kernel over the runs of a store.

#include "harness/store/history.hpp"
#include "tests/harness/store_support.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <vector>

namespace fmha::store {
namespace {

using namespace test;

using testing::HasSubstr;

TEST(Sparkline, GoesFromTheLowestToTheHighest) {
    EXPECT_EQ(sparkline(std::vector{1.0, 2.0, 8.0, std::nan(""), infinity}), "▁▂█ █");
    EXPECT_EQ(sparkline(std::vector{3.0, 3.0}), "▁▁");
    EXPECT_EQ(sparkline({}), "");
}

TEST(History, NamesTheDeviceOfAResult) {
    const Scratch folder;
    const std::string file = folder / "runs.db";
    for (const int device : {0, 1}) {
        Recording recording(file, run_called(fmt::format("run {}", device)));
        CaseResult result = result_called("a@1", device == 1 ? 2.0 : 0.5);
        result.device = device;
        add(recording, result);
        result.name = "b@1";
        result.device.reset();
        add(recording, result);
    }
    const Store store(file, Access::read);
    const auto of_case = courses(store, "a@1", 5).front().points;
    ASSERT_EQ(of_case.size(), 2U);
    EXPECT_EQ(of_case[0].note, "passed kernel on device 0");
    EXPECT_EQ(of_case[1].note, "failed kernel on device 1");
    EXPECT_EQ(courses(store, "b@1", 5).front().points[0].note, "passed kernel");
    const auto of_kernel = courses(store, "kernel", 5).front().points;
    EXPECT_EQ(of_kernel[0].note, "2 of 2 cases passed");
    EXPECT_EQ(of_kernel[1].note, "0 of 2 cases passed; others on device 1");
}

TEST(History, GivesNoOrdersToATerminal) {
    const Scratch folder;
    const std::string file = folder / "runs.db";
    {
        Recording recording(file, run_called("run"));
        CaseResult result = result_called("a\n\x1b[2J@1");
        result.kernel = "kernel\nGREEN";
        add(recording, result);
    }
    for (const char* name : {"a", "kernel"}) {
        const auto ran = cli::test::run({"history", name, "--store", file});
        EXPECT_EQ(ran.code, 0) << ran.err;
        EXPECT_THAT(ran.out, testing::Not(testing::AnyOf(HasSubstr("\x1b"), HasSubstr("\nGREEN"))));
    }
    EXPECT_THAT(cli::test::run({"history", "a", "--store", file}).out,
                testing::AllOf(testing::StartsWith("a\\x0a\\x1b[2J@1\n"), HasSubstr("kernel\\x0aGREEN\n")));
}

TEST(History, TellsACourseOnceThatSeveralNamesStandFor) {
    const Scratch folder;
    const std::string file = folder / "runs.db";
    {
        Recording recording(file, run_called("run"));
        add(recording, result_called("fwd/tails[a=1]@1", 0.5));
    }
    const auto once = cli::test::run({"history", "tails", "--store", file});
    EXPECT_THAT(once.out, HasSubstr("margin used"));
    EXPECT_EQ(cli::test::run({"history", "tails", "fwd/tails[a=1]@1", "tails", "--store", file}).out,
              once.out);
}

// As in the gate: runs with --seed are runs of one case.
TEST(History, JoinsTheSeedsOfACase) {
    const Scratch folder;
    const std::string file = folder / "runs.db";
    for (int seed = 1; seed <= 30; ++seed) {
        Recording recording(file, run_called(fmt::format("run {}", seed)));
        add(recording, result_called(fmt::format("fwd/tails[a=1]@{}", seed), 0.01 * seed));
    }
    const Store store(file, Access::read);
    for (const char* text : {"fwd/tails[a=1]", "tails"}) {
        const auto found = courses(store, text, 50);
        ASSERT_EQ(found.size(), 1U) << text;
        EXPECT_EQ(found[0].subject, "fwd/tails[a=1]");
        ASSERT_EQ(found[0].points.size(), 30U);
        EXPECT_EQ(found[0].points[29].note, "passed kernel, seed 30");
    }
    const auto one = courses(store, "fwd/tails[a=1]@7", 50);
    ASSERT_EQ(one.size(), 1U);
    EXPECT_EQ(one[0].points.size(), 1U);
}

TEST(History, ShowsCasesKernelsTimesAndSpills) {
    const Scratch folder;
    const std::string file = folder / "runs.db";
    int n = 0;
    for (const double ratio : {0.25, 0.5, 4.0}) {
        Recording recording(file, run_called(fmt::format("run {}", ++n)));
        add(recording, result_called("fwd/tails[a=1]@1", ratio));
        recording.add(TimeRecord{"fwd/tails[a=1]@1", "kernel", 1, harness::BenchOutcome::measured, "",
                                 n * 1e-3, 0.0, 0.0, 5e-4, 9, 1, 0.0, 0.0});
        const std::vector<ResourceRecord> used{{"kernel", "gfx942", "clang", 64, 0, 3, 4, n == 3 ? 16 : 0}};
        recording.add(used);
    }
    const Store store(file, Access::read);
    for (const char* text : {"fwd/tails[a=1]@1", "fwd/tails[a=1]", "tails"}) {
        const auto found = courses(store, text, 2);
        ASSERT_EQ(found.size(), 2U) << text;
        EXPECT_EQ(found[0].what, "margin used, verify host gfx950");
        ASSERT_EQ(found[0].points.size(), 2U) << "the last two";
        EXPECT_EQ(found[0].points[1].value, 4.0);
        EXPECT_EQ(found[0].points[1].note, "failed kernel");
        EXPECT_THAT(to_text(found[0]), HasSubstr("▁█"));
        EXPECT_DOUBLE_EQ(found[1].points[1].value, 3.0);
    }
    const auto found = courses(store, "kernel", 20);
    ASSERT_EQ(found.size(), 3U);
    EXPECT_EQ(found[0].points[0].note, "1 of 1 cases passed");
    EXPECT_EQ(found[2].what, "bytes of scratch a lane, build gfx942");
    EXPECT_EQ(found[2].points[2].value, 16.0);
    EXPECT_THAT(refusal([&] { courses(store, "nothing like it", 20); }),
                HasSubstr("no case and no kernel has \"nothing like it\" in its name"));
    run_sql(file, "PRAGMA foreign_keys = off; DELETE FROM run");
    EXPECT_THAT(refusal([&] { courses(Store(file, Access::read), "kernel", 20); }),
                HasSubstr("no run is left of a case or kernel with \"kernel\" in its name"));
}

} // namespace
} // namespace fmha::store
