// A store keeps all appended runs, in the order in which they came.

#include "dispatcher/types/error.hpp"
#include "harness/results/result_json.hpp"
#include "harness/store/history.hpp"
#include "tests/harness/store_support.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <unistd.h>

namespace fmha::store {
namespace {

using namespace test;

TEST(Store, GivesBackWhatWasAppended) {
    const Scratch folder;
    const std::string file = folder / "new/folder/runs.db";
    CaseResult red = result_called("b@1", infinity);
    red.message = "a sentence";
    red.pattern = "only the last row";
    red.worst = {{"o", 1, 2, 3, 4, std::nan(""), 5.0, infinity}};
    red.seconds = std::nan("");
    red.device = 1;
    {
        Recording recording(file, run_called("one"));
        add(recording, red);
        add(recording, result_called("a@1"));
        recording.add(TimeRecord{"a@1", "kernel", 2, harness::BenchOutcome::measured, "", 2.0, 1.5, 3.0, 1.0,
                                 9, 4, 1e9, 2e9});
        const std::vector<ResourceRecord> used{{"kernel", "gfx942", "clang", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}};
        recording.add(used);
        const std::vector<CountRecord> counts{{"house fwd", "kernels", 5600}};
        recording.add(counts);
        recording.finish(12.5, "red");
        EXPECT_EQ(recording.failure(), "");
    }
    const Store store(file, Access::read);
    ASSERT_EQ(store.runs().size(), 1U);
    const RunRecord run = store.runs().front();
    EXPECT_EQ(run.verdict, "red");
    EXPECT_EQ(run.seconds, 12.5);
    EXPECT_EQ(run.commit, "0123456789abcdef");
    EXPECT_EQ(run.identity, (Json{{"cases", 3}}));
    const auto results = store.results("one");
    ASSERT_EQ(results.size(), 2U);
    EXPECT_EQ(to_json(results[0]).dump(), to_json(result_called("a@1")).dump());
    EXPECT_EQ(to_json(results[1]).dump(), to_json(red).dump());
    ASSERT_EQ(store.times("one").size(), 1U);
    EXPECT_EQ(store.times("one").front().best, 1.0);
    EXPECT_EQ(store.times("one").front().round, 2);
    ASSERT_EQ(store.resources("one").size(), 1U);
    EXPECT_EQ(store.resources("one").front().compile_ms, 10);
    ASSERT_EQ(store.counts("one").size(), 1U);
    EXPECT_EQ(store.counts("one").front().value, 5600);
    EXPECT_TRUE(store.results("another").empty());
}

TEST(Store, TellsAContinuedRunOnce) {
    const Scratch folder;
    const std::string file = folder / "runs.db";
    for (int part = 0; part < 2; ++part) {
        Recording recording(file, run_called("one"));
        add(recording, result_called("a@1", part == 0 ? 2.0 : 0.5)); // the second time it is green
        if (part == 1) add(recording, result_called("b@1"));
    }
    const Store store(file, Access::read);
    ASSERT_EQ(store.runs().size(), 1U);
    EXPECT_EQ(store.runs().front().verdict, "");
    const auto results = store.results("one");
    ASSERT_EQ(results.size(), 2U);
    EXPECT_EQ(results[0].outcome, Outcome::passed);
    EXPECT_EQ(results[0].gates.size(), 2U);
    EXPECT_EQ(store.database().number("SELECT count(*) FROM margin"), 4);
}

/// While it lives, folders that others may not write to are read-only for this process, an administrator's too.
class Unprivileged {
  public:
    Unprivileged() {
        constexpr uid_t nobody = 65534;
        EXPECT_EQ(seteuid(before_ == 0 ? nobody : before_), 0);
    }
    Unprivileged(const Unprivileged&) = delete;
    Unprivileged& operator=(const Unprivileged&) = delete;
    ~Unprivileged() { EXPECT_EQ(seteuid(before_), 0); }

  private:
    uid_t before_ = geteuid();
};

// As CI systems keep it: the store and the log of a killed run, in a folder that is read-only.
TEST(Store, SaysThatTheLogOfAKilledRunNeedsAFolderThatCanBeWritten) {
    namespace fs = std::filesystem;
    const Scratch folder;
    const std::string kept = folder / "kept", file = kept + "/runs.db";
    fs::create_directories(kept);
    {
        Recording recording(folder / "runs.db", run_called("one"));
        add(recording, result_called("a@1"));
        for (const char* end : {"", "-wal"}) fs::copy_file((folder / "runs.db") + end, file + end);
    }
    fs::permissions(kept, fs::perms(0555));
    try {
        const Unprivileged now;
        static_cast<void>(Store(file, Access::read).runs());
        ADD_FAILURE() << "it was read";
    } catch (const InputError& error) {
        EXPECT_EQ(error.what(), file + ": a killed run left " + file +
                                    "-wal, which is read in a folder that can be written only; copy " + file +
                                    " and " + file + "-wal to one");
    }
    fs::permissions(kept, fs::perms::owner_all);
    EXPECT_EQ(Store(file, Access::read).results("one").size(), 1U);
}

TEST(Store, AClockThatGoesBackChangesNoOrder) {
    const Scratch folder;
    const std::string file = folder / "runs.db";
    for (const auto& [id, started] :
         {std::pair{"older", "2026-01-02T03:04:05Z"}, {"newer", "2026-01-01T00:00:00Z"}}) {
        RunRecord run = run_called(id);
        run.started = started;
        Recording recording(file, run);
        add(recording, result_called("a@1", id == std::string("older") ? 0.5 : 0.25));
        recording.finish(1.0, "green");
    }
    const Store store(file, Access::read);
    ASSERT_EQ(store.runs().size(), 2U);
    EXPECT_EQ(store.runs().back().id, "newer");
    const auto course = courses(store, "a@1", 5);
    ASSERT_FALSE(course.empty());
    ASSERT_EQ(course.front().points.size(), 2U);
    EXPECT_EQ(course.front().points.back().started, "2026-01-01T00:00:00Z");
}

} // namespace
} // namespace fmha::store
