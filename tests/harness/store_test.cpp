// A store keeps what was appended, whoever kills the writer and whoever writes beside it, and refuses what it cannot read.

#include "dispatcher/types/error.hpp"
#include "harness/results/result_json.hpp"
#include "harness/store/history.hpp"
#include "harness/store/store.hpp"
#include "tests/harness/command_support.hpp"

#include <gmock/gmock.h>
#include <sqlite3.h>

#include <cmath>
#include <csignal>
#include <fstream>
#include <limits>
#include <poll.h>
#include <random>
#include <set>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>

namespace fmha::store {
namespace {

using cli::test::Scratch;
using harness::CaseResult;
using harness::Outcome;
using testing::HasSubstr;

constexpr double infinity = std::numeric_limits<double>::infinity();

RunRecord run_called(const std::string& id) {
    RunRecord run;
    run.id = id;
    run.kind = "verify";
    run.target = "host";
    run.arch = "gfx950";
    run.commit = "0123456789abcdef";
    run.started = "2026-01-02T03:04:05Z";
    run.identity = Json{{"cases", 3}};
    return run;
}

CaseResult result_called(const std::string& name, double ratio = 0.5) {
    CaseResult r;
    r.name = name;
    r.about = "about";
    r.family = "fwd";
    r.tier = "smoke";
    r.labels = {"mask", "tails"};
    r.kernel = "kernel";
    r.outcome = ratio <= 1.0 ? Outcome::passed : Outcome::failed;
    r.gates = {{"G1", "o", ratio <= 1.0, true, ratio, ratio <= 1.0 ? "" : "too far"},
               {"G4", "o", false, false, 7.0}};
    r.seed = 18'000'000'000'000'000'000U;
    r.kernel_seconds = 0.25;
    return r;
}

void add(Recording& recording, const CaseResult& result) {
    recording.add(result.name, {&result, 1});
}

/// The sentence with which `work` refuses.
template <class Work>
std::string refusal(const Work& work) {
    try {
        work();
    } catch (const InputError& error) {
        return error.what();
    }
    return "nothing was refused";
}

void run_sql(const std::string& file, const std::string& sql) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(file.c_str(), &db), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
    sqlite3_close(db);
}

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
        recording.add(TimeRecord{"a@1", "kernel", 2, "measured", "", 2.0, 1.5, 3.0, 1.0, 9, 4, 1e9, 2e9});
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

/// The first schema, as it was written then.
constexpr const char* first_schema =
    "CREATE TABLE word(id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);"
    "CREATE TABLE run(run INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, selection TEXT "
    "NOT NULL,"
    " command TEXT NOT NULL, version TEXT NOT NULL, commit_id TEXT NOT NULL, machine TEXT NOT NULL, compiler "
    "TEXT NOT "
    "NULL, driver TEXT NOT NULL, target TEXT NOT NULL, arch TEXT NOT NULL, started TEXT NOT NULL, seconds "
    "REAL NOT "
    "NULL, shard INTEGER NOT NULL, shards INTEGER NOT NULL, asked INTEGER NOT NULL, identity TEXT NOT NULL, "
    "verdict "
    "TEXT NOT NULL);"
    "CREATE TABLE result(result INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE, "
    "name "
    "INTEGER NOT NULL REFERENCES word, nth INTEGER NOT NULL, kernel INTEGER NOT NULL REFERENCES word, family "
    "INTEGER "
    "NOT NULL REFERENCES word, tier INTEGER NOT NULL REFERENCES word, labels INTEGER NOT NULL REFERENCES "
    "word, about "
    "INTEGER NOT NULL REFERENCES word, outcome TEXT NOT NULL, reason TEXT NOT NULL, message INTEGER NOT NULL "
    "REFERENCES word, pattern INTEGER NOT NULL REFERENCES word, numerics INTEGER NOT NULL REFERENCES word, "
    "reproduce "
    "INTEGER NOT NULL REFERENCES word, worst TEXT NOT NULL, rows INTEGER NOT NULL, elements INTEGER NOT "
    "NULL, sampled "
    "INTEGER NOT NULL, seed INTEGER NOT NULL, kernel_seconds REAL, reference_seconds REAL, seconds REAL, "
    "UNIQUE(run, "
    "name, nth));"
    "CREATE TABLE margin(result INTEGER NOT NULL REFERENCES result ON DELETE CASCADE, nth INTEGER NOT NULL, "
    "gate "
    "INTEGER NOT NULL REFERENCES word, tensor INTEGER NOT NULL REFERENCES word, passed INTEGER NOT NULL, "
    "required "
    "INTEGER NOT NULL, ratio REAL, detail INTEGER NOT NULL REFERENCES word, PRIMARY KEY(result, nth)) "
    "WITHOUT ROWID;"
    "INSERT INTO word VALUES (1, ''), (2, 'old@1'), (3, 'kernel'), (4, 'fwd'), (5, 'smoke'), (6, '[]'), (7, "
    "'G1'), (8, "
    "'o');"
    "INSERT INTO run VALUES (1, 'old', 'verify', '', '', '0.1', 'abc', '', '', '', 'host', 'gfx950', "
    "'2025-01-01T00:00:00Z', 1.0, 1, 1, 1, '{}', 'green');"
    "INSERT INTO result VALUES (1, 1, 2, 0, 3, 4, 5, 6, 1, 'passed', 'none', 1, 1, 1, 1, '[]', 9, 9, 0, 1, "
    "0.1, 0.2, "
    "0.3);"
    "INSERT INTO margin VALUES (1, 0, 7, 8, 1, 1, 0.25, 1);"
    "PRAGMA application_id = 1718446177; PRAGMA user_version = 1;";

TEST(Store, BringsAnOldFileToTheNewestSchema) {
    for (const Access access : {Access::read, Access::write}) {
        const Scratch folder;
        const std::string file = folder / "runs.db";
        run_sql(file, first_schema);
        const Store store(file, access);
        EXPECT_EQ(store.database().number("PRAGMA user_version"), 4);
        const auto results = store.results("old");
        ASSERT_EQ(results.size(), 1U);
        EXPECT_EQ(results.front().name, "old@1");
        ASSERT_EQ(results.front().gates.size(), 1U);
        EXPECT_EQ(results.front().gates.front().ratio, 0.25);
        EXPECT_FALSE(results.front().device);
        EXPECT_EQ(store.database().number("SELECT count(*) FROM results WHERE device IS NULL"), 1);
        EXPECT_TRUE(store.times("old").empty());
        Recording recording(file, run_called("new"));
        recording.add(TimeRecord{"old@1", "kernel", 1, "measured", "", 1.0, 1.0, 1.0, 1.0, 1, 1, 0.0, 0.0});
        EXPECT_EQ(recording.failure(), "");
        EXPECT_EQ(store.times("new").size(), 1U);
    }
}

TEST(Store, RefusesWhatIsNoneInASentence) {
    const Scratch folder;
    const std::string file = folder / "runs.db";
    const auto opened = [&](Access access = Access::write) {
        return refusal([&] { const Store store(file, access); });
    };
    EXPECT_EQ(opened(Access::read), file + ": there is no such file");
    std::ofstream(file) << std::string(5000, 'x');
    EXPECT_EQ(opened(), file + ": is no store of fmha: it is no SQLite file");
    EXPECT_EQ(opened(Access::read), file + ": is no store of fmha: it is no SQLite file");
    std::filesystem::remove(file);
    run_sql(file, "CREATE TABLE mine(a)");
    EXPECT_EQ(opened(), file + ": is no store of fmha: it is a database of something else");
    std::filesystem::remove_all(file);
    { const Store store(file, Access::write); }
    run_sql(file, "PRAGMA user_version = 99");
    EXPECT_EQ(opened(), file + ": was written by a newer fmha, with schema 99; this one knows 4");
    std::filesystem::remove_all(file);
    std::filesystem::create_directory(file);
    EXPECT_EQ(opened(), file + ": a store must be a regular file");
}

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
              file + ": is in use by another process, which has not let go of it for 0.05 s; what "
                     "came after is missing from it");
    add(recording, result_called("b@1"));
    EXPECT_TRUE(other.results("one").empty()) << "after a failure nothing more is written";
}

/// In a process of its own; returns its wait status.
template <class Work, class Meanwhile>
int in_another_process(const Work& work, const Meanwhile& meanwhile) {
    const pid_t child = fork();
    if (child == 0) {
        work();
        _exit(0);
    }
    meanwhile(child);
    int status = 0;
    waitpid(child, &status, 0);
    return status;
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
            _exit(right ? 7 : 8);
        },
        [](pid_t) {});
    EXPECT_EQ(WEXITSTATUS(status), 7);
    const Store store(file, Access::write);
    EXPECT_EQ(
        store.database().number("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'"),
        1);
    EXPECT_GT(store.results("one").size(), 1U);
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

TEST(Store, TwoWritersLoseNothing) {
    const Scratch folder;
    const std::string file = folder / "runs.db";
    constexpr int cases = 150;
    const auto writes = [&](const std::string& id) {
        Recording recording(file, run_called(id));
        for (int n = 0; n < cases; ++n)
            add(recording, result_called(fmt::format("{} {}@1", id, n % 7 == 0 ? "" : id, n)));
        for (int n = 0; n < cases; ++n) add(recording, result_called(fmt::format("case {}@1", n)));
        if (!recording.failure().empty()) _exit(1);
    };
    const int status = in_another_process([&] { writes("left"); },
                                          [&](pid_t) {
                                              const int second =
                                                  in_another_process([&] { writes("right"); }, [](pid_t) {});
                                              EXPECT_EQ(second, 0);
                                          });
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

// A writer says through a pipe which case it has appended, and is killed: what it said is there, once, and its successor
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
                    if (!recording.failure().empty()) _exit(3);
                    if (write(ends[1], name.data(), name.size()) < 0) _exit(4);
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

TEST(History, ShowsCasesKernelsTimesAndSpills) {
    const Scratch folder;
    const std::string file = folder / "runs.db";
    int n = 0;
    for (const double ratio : {0.25, 0.5, 4.0}) {
        Recording recording(file, run_called(fmt::format("run {}", ++n)));
        add(recording, result_called("fwd/tails[a=1]@1", ratio));
        recording.add(TimeRecord{"fwd/tails[a=1]@1", "kernel", 1, "measured", "", n * 1e-3, 0.0, 0.0, 5e-4, 9,
                                 1, 0.0, 0.0});
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
}

} // namespace
} // namespace fmha::store
