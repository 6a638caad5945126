// Cases that are known to be bad keep a run green, are counted as what they are, and leave the file when they are mended.

#include "dispatcher/system/files.hpp"
#include "dispatcher/types/error.hpp"
#include "harness/results/ledger.hpp"
#include "harness/run/waivers.hpp"
#include "harness/store/store.hpp"
#include "tests/harness/command_support.hpp"
#include "tests/harness/faulty_forward.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

namespace fmha::cli {
namespace {

using harness::Outcome;
using test::Ran;
using test::Scratch;
using testing::HasSubstr;
using testing::Not;

/// With one key too many seen by every row, the first fails and the second has nothing that shows it.
constexpr const char* bad = "fwd/faults[mask=t]@1";
constexpr const char* good = "fwd/faults@1";

/// An entry on a line of its own. `more` replaces members.
std::string entry(const std::string& cases, const std::string& expect = "failed",
                  const std::string& more = "", const std::string& arch = "all",
                  const std::string& target = "all") {
    return fmt::format(
        "- {{cases: \"{}\", expect: {}, arch: {}, target: {}, tracker: 17, reason: One key too many.{}}}\n",
        cases, expect, arch, target, more);
}

class WaiverRun : public testing::Test {
  protected:
    std::string file(const std::string& text, const std::string& name = "known.yaml") const {
        system::write_file(folder_ / name, text);
        return folder_ / name;
    }

    /// Both cases on a kernel with the mistake.
    Ran verify(const std::string& waivers, std::vector<std::string> more = {}) const {
        more.insert(more.begin(), {bad, good, "--jobs", "1", "--waivers", file(waivers)});
        return test::verify_on<harness::test::FaultyForward>(more, host_target::Fault::mask_right_too_wide);
    }

    /// The same on a kernel that ends its process where there is a mask, and leaves a mark before.
    Ran verify_crashing(const std::string& waivers, const std::string& cases = bad) const {
        const std::function<void(const FwdArgs&)> crash = [mark = mark()](const FwdArgs& args) {
            if (args.mask.type == MaskType::no_mask) return;
            std::ofstream(mark) << "launched";
            std::abort();
        };
        return test::verify_on<harness::test::SpoiledKernel>(
            {cases, good, "--jobs", "1", "--waivers", file(waivers)}, crash);
    }
    std::string mark() const { return folder_ / "mark"; }
    bool launched() const { return std::filesystem::exists(mark()); }

    Json report(const std::string& name = "r.json") const {
        return Json::parse(system::read_file(folder_ / name));
    }

    Scratch folder_;
};

TEST_F(WaiverRun, AKnownFailureIsAnOutcomeOfItsOwnAndTheRunGreen) {
    EXPECT_EQ(verify("").code, 1) << "without an entry it is red";
    const Ran ran = verify(entry(bad), {"--json", folder_ / "r.json", "--junit", folder_ / "r.xml", "--html",
                                        folder_ / "r.html"});
    EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
    EXPECT_THAT(ran.out,
                HasSubstr("2 asked   1 passed   0 failed   0 refused as predicted   0 not run   1 failed as "
                          "known\nfailed as known by 17: 1, for example " +
                          std::string(bad) + ": known as 17 (One key too many.): G1 o: first at"));
    EXPECT_THAT(ran.out, HasSubstr("GREEN"));
    EXPECT_THAT(ran.out, Not(HasSubstr("FAILED")));

    const Json json = report();
    std::int64_t sum = 0;
    for (const auto& [outcome, name] : EnumTable<Outcome>::names)
        sum += json.at("ledger").at(std::string(name)).get<std::int64_t>();
    EXPECT_EQ(sum, json.at("ledger").at("asked").get<std::int64_t>());
    EXPECT_EQ(json.at("ledger").at("failed_as_known").get<std::int64_t>(), 1);
    for (const Json& result : json.at("results")) {
        const bool known = result.at("name").get<std::string>() == bad;
        EXPECT_EQ(result.at("outcome").get<std::string>(), known ? "failed_as_known" : "passed");
        EXPECT_EQ(result.value("tracker", std::string()), known ? "17" : "");
    }
    EXPECT_THAT(system::read_file(folder_ / "r.xml"),
                testing::AllOf(HasSubstr("tests=\"2\" failures=\"0\" errors=\"0\" skipped=\"1\""),
                               HasSubstr("<skipped message=\"failed_as_known: known as 17 (")));
    EXPECT_THAT(
        system::read_file(folder_ / "r.html"),
        testing::AllOf(
            HasSubstr("<h2>Known to be bad</h2>"), HasSubstr("<tr><td>17</td><td class=\"name\">fwd/f"),
            HasSubstr("class=\"cell known\" title=\"1 of 2 green, 1 failed as known, 2 judged\">1/2<")));
}

TEST_F(WaiverRun, AnUnexpectedPassIsRedAndNamesTheEntryToDelete) {
    const Ran ran = verify("# known\n" + entry(bad) + entry("fwd/faults@1"), {"--junit", folder_ / "r.xml"});
    EXPECT_EQ(ran.code, 1) << ran.out;
    EXPECT_THAT(ran.out, HasSubstr("PASSED UNEXPECTEDLY " + std::string(good)));
    EXPECT_THAT(ran.out, HasSubstr("why      " + folder_ / "known.yaml" +
                                   ": line 3: the entry says that it fails, as 17 "
                                   "(One key too many.); delete the entry, or narrow it to what fails"));
    EXPECT_THAT(ran.out, HasSubstr("1 failed as known   1 passed unexpectedly\n"));
    EXPECT_THAT(ran.out, HasSubstr("\nRED\n"));
    EXPECT_THAT(system::read_file(folder_ / "r.xml"), HasSubstr("<failure type=\"passed_unexpectedly\""));
    // An entry for more than what fails is one of these, too.
    EXPECT_EQ(verify(entry("fwd/faults")).code, 1);
    // Nothing is to be made smaller.
    EXPECT_THAT(verify(entry("fwd/faults"), {"--shrink", "1"}).out, Not(HasSubstr("smaller")));
}

TEST_F(WaiverRun, AnotherEndThanTheKnownOneIsRed) {
    const Ran ran = verify_crashing(entry(bad));
    EXPECT_EQ(ran.code, 1) << ran.out;
    EXPECT_THAT(ran.out, HasSubstr("CRASHED " + std::string(bad)));
    EXPECT_THAT(ran.out,
                HasSubstr(": line 1: the entry expects another end, failed as 17 (One key too many.)"));
    EXPECT_TRUE(launched());
}

TEST_F(WaiverRun, AKnownCrashOrHangIsNotLaunched) {
    EXPECT_EQ(verify_crashing("").code, 1);
    ASSERT_TRUE(launched()) << "the kernel leaves its mark";
    for (const char* end : {"crashed", "timed_out"})
        for (const char* kernel : {"", ", kernel: \"sp*led\""}) {
            std::filesystem::remove(mark());
            const Ran ran = verify_crashing(entry(bad, end, kernel));
            EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
            EXPECT_FALSE(launched()) << end << kernel;
            EXPECT_THAT(ran.out,
                        HasSubstr("2 asked   1 passed   0 failed   0 refused as predicted   1 not run\n"));
            EXPECT_THAT(ran.out,
                        HasSubstr(fmt::format("not run because of waived: 1, for example {}: not launched, "
                                              "because of a known {}: 17 (One key too many.)",
                                              bad, end == std::string("crashed") ? "crash" : "hang")));
        }
}

TEST_F(WaiverRun, AnEntryForAnotherKernelWaivesNothing) {
    EXPECT_EQ(verify(entry(bad, "failed", ", kernel: fit*")).code, 0);
    const Ran ran = verify(entry(bad, "failed", ", kernel: other*"));
    EXPECT_EQ(ran.code, 1) << ran.out;
    EXPECT_THAT(ran.out, HasSubstr("FAILED " + std::string(bad)));
    EXPECT_THAT(
        ran.out,
        HasSubstr(": line 1: no result of the entry's cases is of a kernel with a name like other*\n"));
    EXPECT_EQ(verify_crashing(entry(bad, "crashed", ", kernel: other*")).code, 1);
    EXPECT_TRUE(launched());
}

TEST_F(WaiverRun, AnEntryForOtherRunsWaivesNothing) {
    EXPECT_EQ(verify(entry(bad, "failed", "", "[gfx942, gfx950]", "host")).code, 0);
    for (const auto& text :
         {entry(bad, "failed", "", "gfx942", "host"), entry(bad, "failed", "", "gfx950", "hip")}) {
        const Ran ran = verify(text);
        EXPECT_EQ(ran.code, 1) << ran.out;
        EXPECT_THAT(ran.out, HasSubstr("FAILED " + std::string(bad)));
        EXPECT_THAT(ran.out, HasSubstr("known.yaml: 1 entry of other architectures or targets\n"));
    }
}

TEST_F(WaiverRun, NothingExecutedStaysRed) {
    const auto alone = [&](const std::string& text) {
        return test::verify_on<harness::test::FaultyForward>({bad, "--jobs", "1", "--waivers", file(text)},
                                                             host_target::Fault::mask_right_too_wide);
    };
    const Ran known = alone(entry(bad));
    EXPECT_EQ(known.code, 1) << known.out;
    EXPECT_THAT(known.out, HasSubstr("RED: nothing was executed, apart from what is known to fail"));
    const Ran waived = alone(entry(bad, "crashed"));
    EXPECT_EQ(waived.code, 1) << waived.out;
    EXPECT_THAT(waived.out, HasSubstr("RED: nothing was executed\n"));
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

TEST_F(WaiverRun, AnEntryThatNoCaseCanMatchIsRed) {
    for (const char* dead : {"fwd/fualts", "fwd/faults[mask=t", "fwd/plain[nhead=3]@1", "nowhere/*"}) {
        const Ran ran = verify(entry(bad) + entry(dead), {"--json", folder_ / "r.json"});
        EXPECT_EQ(ran.code, 1) << ran.out;
        const std::string said = fmt::format("RED: {}: line 2: cases: \"{}\" is no name of any case of any "
                                             "tier; delete the entry, or mend the name",
                                             folder_ / "known.yaml", dead);
        EXPECT_THAT(ran.out, HasSubstr(said));
        EXPECT_EQ(report().at("ledger").at("verdict").get<std::string>(), said);
    }
}

TEST_F(WaiverRun, ANameThatOnlyACommandLineKnowsIsRedAndToldAsReportsPrintIt) {
    const std::vector<std::pair<std::string, std::string>> names{
        {"fwd/faults.json", "fwd/faults"},
        {FMHA_CASES_DIR "/fwd/faults", "fwd/faults"},
        {"bwd/", "bwd"},
        {"fwd/plain[batch=1,mask=t]@1", "fwd/plain[mask=t]@1"},
        {"fwd/ragged_tail[seqlen_k=129,dtype=fp16]@3",
         "fwd/ragged_tail[hdim=128,dtype=fp16,seqlen_k=129,mask=0]@3"}};
    std::string text = entry(bad);
    for (const auto& [written, printed] : names) text += entry(written);
    const Ran ran = verify(text);
    EXPECT_EQ(ran.code, 1) << ran.out;
    std::size_t line = 1;
    for (const auto& [written, printed] : names)
        EXPECT_THAT(ran.out, HasSubstr(fmt::format("RED: {}: line {}: cases: \"{}\" is not how reports print "
                                                   "these cases; write \"{}\"\n",
                                                   folder_ / "known.yaml", ++line, written, printed)));
}

// Of a case file, of another tier, as somebody would write it on a command line, of a shape matrix and of a list.
TEST_F(WaiverRun, AnEntryOfCasesThatWereNotAskedIsReported) {
    for (const std::string elsewhere :
         {"bwd/masks", "bwd", "fwd/flash_long", "fwd/plain[seqlen_k=2,mask=t]@1", "*", FMHA_SMALL_MATRIX,
          FMHA_SMALL_MATRIX "/Prod*[*mask=t]", "catalogue/fwd"}) {
        const bool asked = elsewhere == "*";
        const Ran ran = verify(entry(bad) + entry(elsewhere, "failed", asked ? ", kernel: other" : ""));
        EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
        EXPECT_THAT(ran.out, asked ? HasSubstr("line 2: no result of the entry's")
                                   : HasSubstr("known.yaml: 1 entry of cases that were not asked: line 2\n"))
            << elsewhere;
    }
}

TEST_F(WaiverRun, AnExpiredEntryIsRed) {
    EXPECT_EQ(verify(entry(bad, "failed", ", expires: 2999-12-31")).code, 0);
    const Ran ran = verify(entry(bad, "failed", ", expires: 2020-01-31"));
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(
        ran.out,
        HasSubstr("known.yaml: line 1: the entry has expired on 2020-01-31, see 17; mend the cases, or "
                  "give it another day"));
    EXPECT_THAT(ran.out, HasSubstr("1 failed as known")) << "it says what it is all the same";
}

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

TEST_F(WaiverRun, IsRefusedWhereNothingRunsAndWhereItCannotBeRead) {
    EXPECT_THAT(verify(entry(bad), {"--list"}).err, HasSubstr("--list and --waivers exclude one another"));
    EXPECT_THAT(verify("- {}").err, HasSubstr("known.yaml: line 1: cases is missing"));
    const Ran none =
        test::verify_on<harness::test::FittingHostKernel>({good, "--waivers", folder_ / "none.yaml"});
    EXPECT_EQ(none.code, 2);
    EXPECT_THAT(none.err, HasSubstr("none.yaml: No such file"));
}

TEST(Waivers, MeanCasesAsACommandLineDoes) {
    const std::string name = "fwd/tails[hdim=64,seqlen_k=[1,2],mask=t]@7";
    for (const std::string pattern : {"fwd", "fwd/tails", "fwd/tails[hdim=64,seqlen_k=[1,2],mask=t]", "*",
                                      "*/tails", "fwd/*[*mask=t*]", "*seqlen_k=[1,*", "fwd/tails[*]@7"})
        EXPECT_TRUE(harness::means_case(pattern, name)) << pattern;
    EXPECT_TRUE(harness::means_case(name, name));
    for (const char* pattern : {"", "f", "fwd/", "fwd/tail", "tails", "fwd/tail?", "fwd/tails[mask=t]",
                                "fwd/tails@7", "fwd/[st]ails", "fwd/tails[*]@8"})
        EXPECT_FALSE(harness::means_case(pattern, name)) << pattern;
}

TEST(Waivers, AreOfOneStageAmongSeveral) {
    harness::CaseResult result;
    result.name = "splitkv/plain@1";
    result.kernel = "main_a + combine_b";
    harness::Waiver waiver;
    waiver.cases = "splitkv";
    for (const char* glob : {"main_*", "combine_b", "*"}) {
        waiver.kernel = glob;
        EXPECT_TRUE(harness::is_about(waiver, result)) << glob;
    }
    for (const char* glob : {"main_a + combine_b", "main", "a"}) {
        waiver.kernel = glob;
        EXPECT_FALSE(harness::is_about(waiver, result)) << glob;
    }
    waiver.kernel = "*";
    result.kernel.clear();
    EXPECT_FALSE(harness::is_about(waiver, result)) << "no kernel was reached";
}

TEST(Waivers, AreBesideTheBudgetForWhatWasNotRun) {
    harness::CaseResult passed, waived, too_large;
    passed.outcome = Outcome::passed;
    waived.not_run_reason = harness::NotRunReason::waived;
    too_large.not_run_reason = harness::NotRunReason::no_memory;
    harness::Ledger ledger, within({.not_run_budget = 1});
    for (auto* one : {&ledger, &within})
        for (const auto& result : {passed, waived, waived}) one->add(result);
    EXPECT_TRUE(ledger.green());
    for (auto* one : {&ledger, &within}) one->add(too_large);
    EXPECT_TRUE(within.green());
    EXPECT_FALSE(ledger.green());
    EXPECT_THAT(ledger.verdict(), HasSubstr("RED: 1 were not run, the budget is 0"));
}

} // namespace
} // namespace fmha::cli
