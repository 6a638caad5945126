// Cases that are known to be bad keep a run green, are counted as what they are, and leave the file when they are mended.

#include "dispatcher/system/files.hpp"
#include "harness/results/ledger.hpp"
#include "harness/run/waivers.hpp"
#include "tests/harness/waiver_run.hpp"

#include <gmock/gmock.h>

#include <filesystem>

namespace fmha::cli {
namespace {

using harness::Outcome;
using test::bad;
using test::entry;
using test::good;
using test::Ran;
using test::WaiverRun;
using testing::HasSubstr;
using testing::Not;

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

TEST_F(WaiverRun, AnEntryThatNoCaseCanMatchIsRed) {
    const std::vector<std::string> dead{"fwd/fualts", "fwd/faults[mask=t", "fwd/plain[nhead=3]@1",
                                        "nowhere/*"};
    std::string text = entry(bad), verdict;
    for (std::size_t n = 0; n < dead.size(); ++n) {
        text += entry(dead[n]);
        verdict += fmt::format("{}RED: {}: line {}: cases: \"{}\" is no name of any case of any tier; delete "
                               "the entry, or mend the name",
                               n == 0 ? "" : "\n", folder_ / "known.yaml", n + 2, dead[n]);
    }
    const Ran ran = verify(text, {"--json", folder_ / "r.json"});
    EXPECT_EQ(ran.code, 1) << ran.out;
    EXPECT_THAT(ran.out, HasSubstr("\n" + verdict + "\n"));
    EXPECT_EQ(report().at("ledger").at("verdict").get<std::string>(), verdict);
    // One of them is enough.
    EXPECT_EQ(verify(entry(bad) + entry(dead.front())).code, 1);
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
    EXPECT_THAT(ledger.verdict(), HasSubstr("RED: 1 was not run, the budget is 0"));
}

} // namespace
} // namespace fmha::cli
