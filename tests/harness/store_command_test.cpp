// `--store` of the commands: every run is there with its findings, a killed and continued one once.

#include "dispatcher/system/files.hpp"
#include "harness/store/store.hpp"
#include "tests/harness/spoiled_tail.hpp"
#include "tests/support/another_process.hpp"

#include <gmock/gmock.h>

#include <csignal>
#include <unistd.h>

namespace fmha::cli {
namespace {

using harness::Outcome;
using store::Access;
using store::Store;
using test::case_with;
using test::Ran;
using test::Scratch;
using testing::HasSubstr;

Ran verify(const std::vector<std::string>& more, const test::Spoil& spoil = test::spoil_33) {
    return test::verify_tails({15, 31, 33, 63}, more, spoil);
}

TEST(StoreOption, KeepsARunWithItsResults) {
    const Scratch folder;
    const std::string file = folder / "runs.db";
    EXPECT_EQ(verify({"--store", file, "--jobs", "2"}).code, 1);
    // Times decide which cases a shard has, and the red one may be among them.
    const int shard = verify({"--store", file, "--jobs", "0", "--shard", "2/2"}).code;
    const Store store(file, Access::read);
    const auto runs = store.runs();
    ASSERT_EQ(runs.size(), 2U);
    EXPECT_EQ(runs[0].kind, store::RunKind::verify);
    EXPECT_EQ(runs[0].verdict, "red");
    EXPECT_EQ(runs[0].asked, 4);
    EXPECT_THAT(runs[0].commit, testing::AnyOf("unknown", testing::SizeIs(40)));
    EXPECT_THAT(runs[0].identity.dump(), HasSubstr("program_sha256"));
    EXPECT_EQ(runs[1].verdict, shard == 0 ? "green" : "red");
    EXPECT_EQ(runs[1].shard, 2);
    EXPECT_EQ(runs[1].identity["cases_sha256"], runs[0].identity["cases_sha256"])
        << "a shard knows the whole run";
    const auto results = store.results(runs[0].id);
    ASSERT_EQ(results.size(), 4U);
    EXPECT_EQ(results[2].name, case_with(33));
    EXPECT_EQ(results[2].outcome, Outcome::failed);
    EXPECT_FALSE(results[2].worst.empty());
    EXPECT_FALSE(results[0].gates.empty());
}

TEST(StoreOption, KeepsAKilledRunAndTellsItsContinuationOnce) {
    const Scratch folder;
    const std::string file = folder / "runs.db", journal = folder / "run.jsonl";
    const std::vector<std::string> options{"--store", file, "--journal", journal, "--jobs", "1"};
    const auto kept = [&] {
        try {
            const Store store(file, Access::read);
            return store.runs().empty() ? 0 : store.results(store.runs()[0].id).size();
        } catch (const InputError&) {
            return std::size_t{0}; // the child has not begun it yet
        }
    };
    const auto hangs_on_the_fourth = [](const FwdArgs& args) {
        test::spoil_33(args);
        while (args.shape.seqlen_k == 63) pause();
    };
    fmha::test::in_another_process([&] { return verify(options, hangs_on_the_fourth).code; },
                                   [&](pid_t child) {
                                       fmha::test::wait_until([&] { return kept() == 3; });
                                       kill(child, SIGKILL);
                                   });
    ASSERT_EQ(kept(), 3U);
    EXPECT_EQ(Store(file, Access::read).runs()[0].verdict, "") << "it has not finished";
    for (int again = 0; again < 2; ++again) EXPECT_EQ(verify(options).code, 1);
    const Store store(file, Access::read);
    ASSERT_EQ(store.runs().size(), 1U);
    EXPECT_EQ(store.runs()[0].verdict, "red");
    EXPECT_EQ(store.results(store.runs()[0].id).size(), 4U);
    // Without the journal it is another run.
    std::filesystem::remove(journal);
    EXPECT_EQ(verify(options).code, 1);
    EXPECT_EQ(store.runs().size(), 2U);
}

// A kill while the store was created leaves a file without tables. The next run fills it, a shard too.
TEST(StoreOption, FillsAStoreThatAKilledProgramHadBegun) {
    const Scratch folder;
    for (const bool header : {true, false}) {
        const std::string file = folder / (header ? "header.db" : "nothing.db");
        if (header)
            const store::Database begun(file, Access::write, Store::usual_patience);
        else
            system::write_file(file, "");
        const Ran ran = verify({"--store", file, "--jobs", "0", "--shard", "2/2"});
        EXPECT_NE(ran.code, 2) << ran.err;
        EXPECT_EQ(Store(file, Access::read).runs().size(), 1U);
    }
}

TEST(StoreOption, RefusesAFileThatAnotherOptionWrites) {
    const Scratch folder;
    const Ran ran = verify({"--store", folder / "x", "--json", folder / "x"});
    EXPECT_EQ(ran.code, 2);
    EXPECT_THAT(ran.err, HasSubstr("--store names the same file"));
    system::write_file(folder / "text", "no database at all, but a text of some length that is not one");
    const Ran text = verify({"--store", folder / "text"});
    EXPECT_EQ(text.code, 2);
    EXPECT_THAT(text.err, HasSubstr("is no store of fmha: it is no SQLite file"));
}

TEST(StoreOption, AFileThatCannotBeWrittenTakesNoRunAway) {
    const Scratch folder;
    const std::string file = folder / "runs.db";
    const Ran bench = test::run({"bench", "--shape", "dtype=fp32,seqlen=16,hdim=32", "--seconds", "0.001",
                                 "--rounds", "1", "--json", "/dev/full", "--store", file});
    EXPECT_EQ(bench.code, 2);
    EXPECT_THAT(bench.err, HasSubstr("/dev/full: cannot be written: No space left on device"));
    std::filesystem::create_directory(folder / "report");
    std::filesystem::create_symlink("/dev/full", folder / "report/parity.json");
    const Ran parity = test::run(
        {"parity", "--rules", "house", "--arch", "gfx90a", "--report", folder / "report", "--store", file});
    EXPECT_EQ(parity.code, 2);
    EXPECT_THAT(parity.err, HasSubstr("cannot be written: No space left on device"));
    EXPECT_TRUE(std::filesystem::exists(folder / "report/parity.html"));
    const auto runs = Store(file, Access::read).runs();
    for (const auto& run : runs) EXPECT_EQ(run.verdict, "green") << to_string(run.kind);
    EXPECT_EQ(runs.size(), 2U);
}

TEST(StoreOption, KeepsTimesOfRoundsAndCounts) {
    const Scratch folder;
    const std::string file = folder / "runs.db";
    const Ran bench = test::run(
        {"bench", "--shape", "dtype=fp32,seqlen=16,hdim=32", "--seconds", "0.001", "--store", file});
    EXPECT_EQ(bench.code, 0) << bench.err << bench.out;
    EXPECT_THAT(bench.out, HasSubstr("round 3 of 3"));
    EXPECT_EQ(test::run({"parity", "--rules", "house", "--arch", "gfx90a", "--store", file}).code, 0);
    const Ran refused = test::run({"parity", "--accept", "--reason", "x", "--store", file});
    EXPECT_EQ(refused.code, 2);
    const Store store(file, Access::read);
    const auto runs = store.runs();
    ASSERT_EQ(runs.size(), 2U);
    const auto times = store.times(runs[0].id);
    ASSERT_EQ(times.size(), 3U);
    for (const auto& time : times) {
        EXPECT_EQ(time.outcome, harness::BenchOutcome::measured);
        EXPECT_GT(time.best, 0.0);
        EXPECT_LE(time.best, time.low);
        EXPECT_LE(time.low, time.median);
    }
    std::int64_t fwd = 0;
    for (const auto& count : store.counts(runs[1].id))
        if (count.subject == "house gfx90a fwd") fwd = count.value;
    EXPECT_GT(fwd, 100);
    const Ran history = test::run({"history", times.front().kernel, "--store", file});
    EXPECT_EQ(history.code, 0) << history.err;
    EXPECT_THAT(history.out, HasSubstr("milliseconds, bench host gfx950"));
    const std::string page = file + ".html";
    EXPECT_EQ(test::run({"history", times.front().kernel, "--store", file, "--html", page}).code, 0);
    const std::string section = system::read_file(page);
    EXPECT_THAT(section, HasSubstr("<h2>Course over runs</h2>"));
    EXPECT_THAT(section, HasSubstr(times.front().kernel));
    EXPECT_THAT(section, HasSubstr("<circle cx="));
    // A page takes this section and others.
    const std::string other = file + ".other.html", whole = file + ".page.html";
    system::write_file(other, "<section><h2>Another</h2></section>\n");
    const Ran verify = test::run({"verify", "fwd/tiny[hdim=8,seqlen=1,dtype=fp32]@1", "--cases-root",
                                  FMHA_CASES_DIR, "--html", whole, "--section", page, "--section", other});
    EXPECT_THAT(verify.err, testing::IsEmpty());
    EXPECT_THAT(system::read_file(whole),
                testing::AllOf(HasSubstr("<h2>Course over runs</h2>"), HasSubstr("<h2>Another</h2>")));
    const Ran nothing = test::run({"history", "no such thing", "--store", file});
    EXPECT_EQ(nothing.code, 2);
}

} // namespace
} // namespace fmha::cli
