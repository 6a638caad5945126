// Runs with known failures that are continued, cut into shards, joined and kept.

#include "dispatcher/system/files.hpp"
#include "harness/store/store.hpp"
#include "tests/harness/waiver_run.hpp"

#include <gmock/gmock.h>

namespace fmha::cli {
namespace {

using test::bad;
using test::entry;
using test::good;
using test::Ran;
using test::WaiverRun;
using testing::HasSubstr;
using testing::Not;

TEST_F(WaiverRun, IsContinuedWithTheSameFileOnly) {
    const std::vector<std::string> journal{"--journal", folder_ / "run.jsonl"};
    ASSERT_EQ(verify(entry(bad), journal).code, 0);
    const Ran again = verify(entry(bad), journal);
    EXPECT_EQ(again.code, 0) << again.out << again.err;
    EXPECT_THAT(again.out, HasSubstr("continued: 2 cases had finished in earlier processes"));
    EXPECT_THAT(again.out, HasSubstr("1 failed as known\n"));
    for (const std::string& other : {entry(good), std::string("# no entries\n")}) {
        const Ran ran = verify(other, journal);
        EXPECT_EQ(ran.code, 2) << ran.out;
        EXPECT_THAT(ran.err, HasSubstr("run.jsonl: belongs to another run: waivers_sha256 is \""));
    }
    const Ran without = test::verify_on<harness::test::FaultyForward>(
        {bad, good, "--jobs", "1", "--journal", folder_ / "run.jsonl"},
        host_target::Fault::mask_right_too_wide);
    EXPECT_EQ(without.code, 2) << without.out;
    EXPECT_THAT(without.err, HasSubstr("and nothing here"));
}

// What an entry objects to follows from the day, and a run may pass midnight.
TEST_F(WaiverRun, AnEntryThatExpiresMeanwhileMakesNoOtherRunOfIt) {
    const std::string text = entry(bad, "failed", ", expires: 2020-01-31");
    const std::string journal = folder_ / "run.jsonl";
    const auto before_that_day = [&](const std::string& file) {
        std::string content = system::read_file(file);
        const auto begin = content.find(",\"waivers_red\":["), end = content.find("]", begin);
        ASSERT_NE(begin, std::string::npos) << content.substr(0, 2000);
        system::write_file(file, content.erase(begin, end + 1 - begin));
    };
    verify(text, {"--journal", journal});
    before_that_day(journal);
    const Ran again = verify(text, {"--journal", journal});
    EXPECT_EQ(again.code, 1) << again.err;
    EXPECT_THAT(again.out, HasSubstr("continued: 2 cases had finished in earlier processes"));
    EXPECT_THAT(again.out, HasSubstr("the entry has expired on 2020-01-31"));

    const std::vector<std::string> shards{folder_ / "1.jsonl", folder_ / "2.jsonl"};
    verify(text, {"--shard", "1/2", "--journal", shards[0]});
    verify(text, {"--shard", "2/2", "--journal", shards[1]});
    before_that_day(shards[0]);
    const std::string joined = folder_ / "all.db";
    for (const auto& files : {std::vector{shards[0], shards[1]}, {shards[1], shards[0]}, {joined}}) {
        std::vector<std::string> command{"merge"};
        command.insert(command.end(), files.begin(), files.end());
        if (files.size() > 1) command.insert(command.end(), {"--store", joined});
        const Ran merged = test::run(command);
        EXPECT_EQ(merged.code, 1) << merged.err;
        EXPECT_THAT(merged.out, HasSubstr("known.yaml: line 1: the entry has expired on 2020-01-31"));
    }
}

TEST_F(WaiverRun, ShardsAreJoinedWithWhatTheirFileSays) {
    const auto shards = [&](const std::string& text) {
        verify(text, {"--shard", "1/2", "--json", folder_ / "1.json"});
        verify(text, {"--shard", "2/2", "--store", folder_ / "2.db"});
        const Ran ran =
            test::run({"merge", folder_ / "1.json", folder_ / "2.db", "--store", folder_ / "all.db"});
        std::filesystem::remove(folder_ / "2.db");
        return ran;
    };
    const Ran green = shards(entry(bad));
    EXPECT_EQ(green.code, 0) << green.out << green.err;
    EXPECT_THAT(green.out, HasSubstr("0 not run   1 failed as known\nfailed as known by 17: 1"));
    const Ran history = test::run({"history", bad, "--store", folder_ / "all.db"});
    EXPECT_THAT(history.out, HasSubstr("failed_as_known fitting")) << history.err;

    const Ran passed = shards(entry("fwd/faults"));
    EXPECT_EQ(passed.code, 1) << passed.out;
    EXPECT_THAT(passed.out, HasSubstr("PASSED UNEXPECTEDLY"));
    const Ran dead = shards(entry(bad) + entry("fwd/fualts"));
    EXPECT_EQ(dead.code, 1) << dead.out;
    EXPECT_THAT(dead.out, HasSubstr("line 2: cases: \"fwd/fualts\" is no name"));

    verify(entry(bad), {"--shard", "1/2", "--json", folder_ / "1.json"});
    verify("", {"--shard", "2/2", "--json", folder_ / "2.json"});
    const Ran mixed = test::run({"merge", folder_ / "1.json", folder_ / "2.json"});
    EXPECT_EQ(mixed.code, 2) << mixed.out;
    EXPECT_THAT(mixed.err, HasSubstr("belongs to another run than"));
    EXPECT_THAT(mixed.err, HasSubstr("waivers_sha256 is \""));
}

TEST_F(WaiverRun, AStoreKeepsTheTracker) {
    verify(entry(bad), {"--store", folder_ / "runs.db"});
    const store::Store runs(folder_ / "runs.db", store::Access::read);
    ASSERT_EQ(runs.runs().size(), 1U);
    EXPECT_EQ(runs.runs()[0].verdict, "green");
    for (const auto& result : runs.results(runs.runs()[0].id))
        EXPECT_EQ(result.tracker, result.name == bad ? "17" : "") << result.name;
    EXPECT_EQ(runs.database().number("SELECT count(*) FROM results WHERE tracker = '17'"), 1);
}

TEST_F(WaiverRun, AShardOfKnownFailuresAloneIsGreenAndTheRunOfSuchShardsRed) {
    const std::string same = "fwd/faults[mask=t]@2"; // of another seed
    const auto shard = [&](const std::string& second, const std::string& text, const std::string& number) {
        return test::verify_on<harness::test::FaultyForward>({bad, second, "--jobs", "1", "--waivers",
                                                              file(text), "--shard", number + "/2", "--json",
                                                              folder_ / number},
                                                             host_target::Fault::mask_right_too_wide);
    };
    const std::string told =
        "this shard has nothing but what is known to be bad: fmha merge judges the run\n";
    for (const std::string& known : {entry("fwd/faults[mask=t]"), entry("fwd/faults[mask=t]", "crashed")}) {
        const Ran first = shard(good, known, "1");
        EXPECT_EQ(first.code, 0) << first.out;
        EXPECT_THAT(first.out, HasSubstr(told));
        EXPECT_THAT(first.out, HasSubstr("\nGREEN\n"));
        const Ran second = shard(good, known, "2");
        EXPECT_EQ(second.code, 0) << second.out;
        EXPECT_THAT(second.out, Not(HasSubstr(told)));
        EXPECT_EQ(test::run({"merge", folder_ / "1", folder_ / "2"}).code, 0);

        shard(same, known, "1");
        EXPECT_EQ(shard(same, known, "2").code, 0);
        const Ran merged = test::run({"merge", folder_ / "1", folder_ / "2"});
        EXPECT_EQ(merged.code, 1) << merged.out;
        EXPECT_THAT(merged.out, HasSubstr("RED: nothing was executed"));
    }
    // What fails otherwise than the entry says is red in a shard, too.
    const Ran unknown = shard(good, entry("fwd/faults[mask=t]@2"), "1");
    EXPECT_EQ(unknown.code, 1) << unknown.out;
    EXPECT_THAT(unknown.out, HasSubstr("\nRED\n"));
}

} // namespace
} // namespace fmha::cli
