// Nothing that was appended is lost, when somebody kills the writer, when others write beside it, and when the disk is full.

#include "tests/harness/store_support.hpp"
#include "tests/support/another_process.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <poll.h>
#include <random>
#include <set>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace fmha::store {
namespace {

using namespace test;
using fmha::test::in_another_process;

TEST(Store, SaysWhoIsInTheWay) {
    const Scratch folder;
    const std::string file = folder / "runs.db";
    Recording recording(file, run_called("one"), std::chrono::milliseconds(50));
    const Store other(file, Access::write);
    {
        const Transaction long_one(other.database());
        add(recording, result_called("a@1"));
    }
    EXPECT_EQ(recording.failure(),
              file + ": is in use by another process, which has not let go of it for 0.05 s; later "
                     "findings are missing from it");
    add(recording, result_called("b@1"));
    EXPECT_TRUE(other.results("one").empty()) << "after a failure nothing more is written";
}

// Between its steps a program that creates a store holds no lock.
TEST(Store, IsAwaitedWhileItIsCreated) {
    const Scratch folder;
    const std::string file = folder / "runs.db";
    { const Database begun(file, Access::write, Store::usual_patience); }
    for (const bool killed : {true, false}) {
        const std::jthread creator([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
            if (!killed) const Recording recording(file, run_called("one"));
        });
        // Once its tables are there it is read, whether the first run stands in it already or not.
        const std::string said = refusal([&] { Store(file, Access::read).runs(); });
        if (killed)
            EXPECT_THAT(said, testing::HasSubstr(": is empty, it is no store"));
        else
            EXPECT_EQ(said, "accepted");
    }
}

// Where a file system has no shared memory, a writer keeps no log beside the store.
TEST(Store, IsNotReadWhileAWriterWithoutALogWrites) {
    const Scratch folder;
    const std::string file = folder / "runs.db";
    const Database writer(file, Access::write, Store::usual_patience);
    writer.run("PRAGMA journal_mode = delete; BEGIN EXCLUSIVE; CREATE TABLE half (whole INTEGER)");
    const auto read = [&] { return Database(file, Access::read, std::chrono::milliseconds(20)).empty(); };
    EXPECT_THAT(refusal(read), testing::HasSubstr(": is in use by another process"));
    writer.run("COMMIT");
    EXPECT_FALSE(read());
}

TEST(Store, AFullDiskCostsTheRestAndNothingBefore) {
    const Scratch folder;
    const std::string file = folder / "runs.db";
    const int status = in_another_process(
        [&] {
            std::signal(SIGXFSZ, SIG_IGN);
            const rlimit limit{300'000, 300'000};
            setrlimit(RLIMIT_FSIZE, &limit);
            Recording recording(file, run_called("one"));
            int kept = 0;
            for (; recording.failure().empty(); ++kept)
                add(recording, result_called(fmt::format("{}@1", kept)));
            const bool right = recording.failure().starts_with(file + ": cannot be ") && kept > 1;
            return right ? 7 : 8;
        },
        [](pid_t) {});
    EXPECT_EQ(WEXITSTATUS(status), 7);
    const Store store(file, Access::write);
    EXPECT_EQ(
        store.database().number("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'"),
        1);
    EXPECT_GT(store.results("one").size(), 1U);
}

TEST(Store, TwoWritersLoseNothing) {
    const Scratch folder;
    const std::string file = folder / "runs.db";
    constexpr int cases = 150;
    const auto writes = [&](const std::string& id) {
        Recording recording(file, run_called(id));
        for (int n = 0; n < cases; ++n)
            add(recording, result_called(fmt::format("{} {}@1", id, n % 7 == 0 ? "" : id, n)));
        for (int n = 0; n < cases; ++n) add(recording, result_called(fmt::format("case {}@1", n)));
        return recording.failure().empty() ? 0 : 1;
    };
    const int status = in_another_process(
        [&] { return writes("left"); },
        [&](pid_t) { EXPECT_EQ(in_another_process([&] { return writes("right"); }, [](pid_t) {}), 0); });
    EXPECT_EQ(status, 0);
    const Store store(file, Access::read);
    EXPECT_EQ(store.runs().size(), 2U);
    for (const char* id : {"left", "right"}) {
        std::set<std::string> names;
        for (const auto& result : store.results(id))
            if (result.name.starts_with("case ")) {
                EXPECT_TRUE(names.insert(result.name).second);
            }
        EXPECT_EQ(names.size(), static_cast<std::size_t>(cases));
    }
}

// A writer says through a pipe which case it has appended, and is killed: the announced cases are there, once, and its successor
// finishes the run.
TEST(Store, LosesNothingAtTwoHundredKills) {
    const Scratch folder;
    const std::string file = folder / "runs.db";
    constexpr int kills = 200;
    std::mt19937 random(11);
    std::set<std::string> told;
    int killed = 0;
    for (int n = 0; n < kills; ++n) {
        int ends[2];
        ASSERT_EQ(pipe(ends), 0);
        const int status = in_another_process(
            [&] {
                close(ends[0]);
                Recording recording(file, run_called("one"));
                for (int c = 0;; ++c) {
                    const std::string name = fmt::format("{:03}/{:05}@1", n, c);
                    add(recording, result_called(name));
                    if (!recording.failure().empty()) return 3;
                    if (write(ends[1], name.data(), name.size()) < 0) return 4;
                }
            },
            [&](pid_t child) {
                // Every fourth is killed while it opens the file, or creates it, the others among their cases.
                if (n % 4 != 0) {
                    pollfd first{ends[0], POLLIN, 0};
                    poll(&first, 1, 10'000);
                }
                std::this_thread::sleep_for(
                    std::chrono::microseconds(std::uniform_int_distribution(0, 8'000)(random)));
                kill(child, SIGKILL);
            });
        killed += WIFSIGNALED(status) ? 1 : 0;
        close(ends[1]);
        std::string said, block(1 << 16, ' ');
        for (ssize_t got = 0; (got = read(ends[0], block.data(), block.size())) > 0;)
            said.append(block, 0, static_cast<std::size_t>(got));
        close(ends[0]);
        constexpr std::size_t length = 11;
        for (std::size_t at = 0; at + length <= said.size(); at += length)
            told.insert(said.substr(at, length));
    }
    EXPECT_EQ(killed, kills) << "a writer ended by itself";
    EXPECT_GT(told.size(), 200U);
    const Store store(file, Access::write);
    EXPECT_EQ(
        store.database().number("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'"),
        1);
    EXPECT_EQ(store.runs().size(), 1U);
    std::set<std::string> kept;
    for (const auto& result : store.results("one")) {
        EXPECT_TRUE(kept.insert(result.name).second) << result.name << " stands twice";
        EXPECT_EQ(result.gates.size(), 2U) << result.name;
    }
    for (const std::string& name : told) EXPECT_TRUE(kept.contains(name)) << name;
    // One more than was said may have been committed before each kill.
    EXPECT_LE(kept.size(), told.size() + kills);
}

} // namespace
} // namespace fmha::store
