// `fmha gate`: everything that can get worse between two runs is red by name.

#include "dispatcher/system/files.hpp"
#include "harness/regression/compare.hpp"
#include "tests/harness/command_support.hpp"
#include "tests/harness/gate_findings.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <random>

namespace fmha::cli {
namespace {

using harness::Outcome;
using test::Findings;
using test::quiet_bench;
using test::Ran;
using test::run_of;
using test::Scratch;
using test::some_cases;
using test::usual;
using testing::HasSubstr;
using testing::Not;

Ran gate(const Scratch& folder, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments{"gate", "--store", folder / "new.db", "--against", folder / "old.db"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return test::run(arguments);
}

/// The gate's answer to `change`.
Ran gate_after(const std::function<void(Findings&)>& change) {
    const Scratch folder;
    keep(folder / "old.db", "aaaa", usual());
    Findings after = usual();
    change(after);
    keep(folder / "new.db", "bbbb", after);
    return gate(folder);
}

TEST(Gate, TheSameIsGreen) {
    const Ran ran = gate_after([](Findings&) {});
    EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("fwd             GREEN   30 cases"));
    EXPECT_THAT(ran.out, HasSubstr("bwd             GREEN   30 cases"));
    EXPECT_THAT(ran.out, HasSubstr("bbbb against aaaa: GREEN"));
    EXPECT_THAT(ran.out, HasSubstr("2 times"));
    EXPECT_THAT(ran.out, Not(HasSubstr("note:")));
}

// Both sides of a comparison may be in one store.
TEST(Gate, ANoteOfBothSidesIsSaidOnce) {
    const Scratch folder;
    keep(folder / "new.db", "aaaa", usual());
    { const store::Recording killed(folder / "new.db", run_of(store::RunKind::verify, "aaaa")); }
    keep(folder / "new.db", "bbbb", usual());
    const Ran ran = test::run({"gate", "--store", folder / "new.db", "--against", "previous"});
    const std::size_t said = ran.out.find("has not finished and is left out");
    ASSERT_NE(said, std::string::npos) << ran.out << ran.err;
    EXPECT_EQ(ran.out.find("has not finished and is left out", said + 1), std::string::npos) << ran.out;
}

TEST(Gate, ARedCaseIsRedByName) {
    const Ran ran = gate_after([](Findings& f) {
        f.results[7].outcome = Outcome::failed;
        f.results[7].message = "G1 o: first at b0";
    });
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.out,
                HasSubstr("not_green   fwd/case7\n              passed -> failed: G1 o: first at b0"));
    EXPECT_THAT(ran.out, HasSubstr("RED, 1 finding\n"));
}

TEST(Gate, GivesNoOrdersToATerminal) {
    const std::string hostile = "\x1b[2J\nGREEN";
    regression::Verdict verdict{hostile, hostile, {}, {hostile}};
    regression::Finding finding{
        regression::Kind::count, hostile, hostile, hostile, hostile, hostile, hostile};
    finding.accepted = hostile;
    verdict.families.push_back({.family = hostile, .findings = {finding}});
    EXPECT_THAT(to_text(verdict), Not(testing::AnyOf(HasSubstr("\x1b"), HasSubstr("\nGREEN"))));
}

TEST(Gate, NamesASeriesWithoutWhatChoosesNothing) {
    EXPECT_EQ(regression::shown("verify host gfx950 all tier=smoke family= kernels=planned kernel= where="),
              "verify host gfx950 all tier=smoke");
    EXPECT_EQ(regression::shown("bench hip gfx950 fwd/models  tier=smoke where=c.hdim_q == 128"),
              "bench hip gfx950 fwd/models tier=smoke where=c.hdim_q == 128");
}

TEST(Gate, ARedCaseNamesTheDeviceItWasOn) {
    const Ran ran = gate_after([](Findings& f) {
        f.results[7].outcome = Outcome::failed;
        f.results[7].message = "G1 o: first at b0";
        f.results[7].device = 1;
    });
    EXPECT_THAT(ran.out, HasSubstr("passed -> failed on device 1: G1 o: first at b0"));
}

TEST(Gate, ANewlyRedFamilyIsRedAndTheOtherIsNot) {
    const Ran ran = gate_after([](Findings& f) {
        for (auto& result : f.results)
            if (result.family == ApiFamily::bwd) result.outcome = Outcome::crashed;
    });
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.out, HasSubstr("bwd             RED"));
    EXPECT_THAT(ran.out, HasSubstr("fwd             GREEN"));
}

TEST(Gate, ACaseThatIsNoLongerExecutedIsRed) {
    const Ran ran = gate_after([](Findings& f) {
        f.results[3].outcome = Outcome::not_run;
        f.results[3].not_run_reason = harness::NotRunReason::target_cannot;
    });
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.out, HasSubstr("not_green   fwd/case3\n              passed -> not_run"));
}

TEST(Gate, ANewCaseMustBeGreen) {
    const auto add_case = [](Outcome outcome) {
        return gate_after([outcome](Findings& f) {
            f.results.push_back(f.results[0]);
            f.results.back().name = "fwd/new@1";
            f.results.back().outcome = outcome;
        });
    };
    EXPECT_EQ(add_case(Outcome::passed).code, 0);
    EXPECT_THAT(add_case(Outcome::failed).out, HasSubstr("not_green   fwd/new\n"));
}

// The file of --waivers is where it was accepted.
TEST(Gate, AKnownFailureIsGreenAndAnUnexpectedPassIsRed) {
    const auto with = [](Outcome outcome) {
        return gate_after([outcome](Findings& f) { f.results[3].outcome = outcome; });
    };
    EXPECT_EQ(with(Outcome::failed_as_known).code, 0);
    const Ran ran = with(Outcome::passed_unexpectedly);
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.out, HasSubstr("not_green   fwd/case3\n              passed -> passed_unexpectedly"));
}

TEST(Gate, ALostCaseIsRed) {
    const Ran ran = gate_after([](Findings& f) { f.results.erase(f.results.begin() + 12); });
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.out, HasSubstr("case_lost   fwd/case12\n"));
}

TEST(Gate, ALostKernelIsRedWhereverItWas) {
    EXPECT_THAT(gate_after([](Findings& f) {
                    for (auto& result : f.results)
                        if (result.kernel == "fwd_gfx950_kernel2") result.kernel = "fwd_gfx950_kernel3";
                }).out,
                HasSubstr("kernel_lost fwd_gfx950_kernel2\n              run -> not run"));
    EXPECT_THAT(gate_after([](Findings& f) {
                    for (auto& times : f.benches) times.erase(times.begin() + 3, times.end());
                }).out,
                HasSubstr("kernel_lost fwd_gfx950_timed1 on fwd/models@1\n              timed -> not timed"));
    EXPECT_THAT(gate_after([](Findings& f) { f.resources.pop_back(); }).out,
                HasSubstr("kernel_lost bwd_gfx942_b\n              compiled -> not compiled"));
}

TEST(Gate, AKernelThatIsTimedNoMoreIsRed) {
    const Ran ran = gate_after([](Findings& f) {
        for (auto& time : f.benches.back())
            if (time.kernel == "fwd_gfx950_timed1") {
                time.outcome = harness::BenchOutcome::wrong;
                time.message = "G1";
            }
    });
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.out, HasSubstr("timed -> wrong: G1"));
}

TEST(Gate, ASpillIsRed) {
    const Ran ran = gate_after([](Findings& f) { f.resources[0].scratch_bytes = 16; });
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.out,
                HasSubstr("spill       fwd_gfx942_a\n              no spill -> 16 bytes of scratch a lane"));
}

TEST(Gate, ATenPercentSlowdownIsRedByName) {
    for (unsigned seed = 0; seed < 10; ++seed) {
        const Ran ran = gate_after([seed](Findings& f) {
            std::mt19937 random(seed);
            for (auto& times : f.benches) times = quiet_bench(random, 1.10);
        });
        EXPECT_EQ(ran.code, 1) << seed << ran.out;
        EXPECT_THAT(ran.out, HasSubstr("slower      fwd_gfx950_timed0 on fwd/models@1\n"));
        EXPECT_THAT(ran.out, Not(HasSubstr("slower      fwd_gfx950_timed1")));
    }
}

TEST(Gate, ASlowdownInOneRunOfThreeIsNone) {
    const Ran ran = gate_after([](Findings& f) {
        std::mt19937 random(3);
        f.benches[1] = quiet_bench(random, 1.5);
    });
    EXPECT_EQ(ran.code, 0) << ran.out;
}

TEST(Gate, TooFewTimesAreSaid) {
    const Ran ran = gate_after([](Findings& f) { f.benches.resize(2); });
    EXPECT_EQ(ran.code, 0) << ran.out;
    EXPECT_THAT(ran.out, HasSubstr("times were not compared: that takes 3 runs a side"));
}

TEST(Gate, AMarginOfOneCaseAndOfAllAreRed) {
    const Ran one = gate_after([](Findings& f) { f.results[4].gates[1].ratio = 0.95; });
    EXPECT_EQ(one.code, 1);
    EXPECT_THAT(one.out, HasSubstr("margin      fwd/case4 G2:o\n"));
    const Ran all = gate_after([](Findings& f) {
        std::mt19937 random(7);
        f.results = some_cases(random, 1.25);
    });
    EXPECT_EQ(all.code, 1);
    EXPECT_THAT(all.out, HasSubstr("30 margins G2:o"));
    EXPECT_THAT(all.out, Not(HasSubstr("G1:o")));
}

TEST(Gate, MarginsOfOneSeedAreNotJudgedAndThatIsSaid) {
    const Scratch folder;
    keep(folder / "old.db", "aaaa", usual(), false);
    Findings after = usual();
    after.results[4].gates[1].ratio = 0.95;
    keep(folder / "new.db", "bbbb", after, false);
    const Ran ran = gate(folder);
    EXPECT_EQ(ran.code, 0);
    EXPECT_THAT(ran.out,
                HasSubstr("180 margins were not judged: the program before was run with fewer than 3 seeds"));
}

TEST(Gate, AChangedCountIsRedUntilItIsAccepted) {
    const Scratch folder;
    keep(folder / "old.db", "aaaa", usual());
    Findings after = usual();
    after.counts[0].value = 5590;
    after.results[0].outcome = Outcome::failed;
    keep(folder / "new.db", "bbbb", after);
    EXPECT_THAT(gate(folder).out,
                HasSubstr("count       house gfx950 fwd\n              5600 kernels -> 5590 kernels   -10"));
    EXPECT_EQ(gate(folder, {"--accept"}).code, 2);
    EXPECT_EQ(gate(folder, {"--reason", "x"}).code, 2);
    EXPECT_THAT(gate(folder, {"--accept", "--reason", " "}).err, HasSubstr("--reason is blank"));
    const Ran nowhere = gate(folder, {"--junit", folder / "new.db"});
    EXPECT_EQ(nowhere.code, 2);
    EXPECT_EQ(nowhere.out, "") << "it is refused before anything is said";
    const Ran accepted = gate(folder, {"--accept", "--reason", "one tile is gone"});
    EXPECT_EQ(accepted.code, 1) << "a red case cannot be accepted";
    EXPECT_THAT(accepted.out, HasSubstr("accepted: one tile is gone"));
    EXPECT_THAT(accepted.out, HasSubstr("RED, 1 finding\n"));
    EXPECT_THAT(gate(folder).out, HasSubstr("RED, 1 finding\n")) << "it is remembered";
    Findings more = after;
    more.counts[0].value = 5580;
    keep(folder / "new.db", "cccc", more);
    EXPECT_THAT(gate(folder).out, HasSubstr("RED, 2 findings: 1 not_green, 1 count\n"))
        << "another number is another change";
}

TEST(Gate, OneOfSeveralFindingsIsAcceptedAlone) {
    const Scratch folder;
    keep(folder / "old.db", "aaaa", usual());
    Findings after = usual();
    after.counts[0].value = 5590;
    after.results.pop_back();
    keep(folder / "new.db", "bbbb", after);
    EXPECT_EQ(gate(folder, {"--only", "count"}).code, 2);
    const Ran nothing = gate(folder, {"--accept", "--only", "slower", "--reason", "x"});
    EXPECT_EQ(nothing.code, 2);
    EXPECT_THAT(nothing.err, HasSubstr("--only slower: no finding that can be accepted"));
    const Ran count = gate(folder, {"--accept", "--only", "count", "--reason", "one tile is gone"});
    EXPECT_THAT(count.out, HasSubstr("accepted: one tile is gone"));
    EXPECT_THAT(count.out, HasSubstr("RED, 1 finding\n")) << "the case is lost all the same";
    const std::string name = usual().results.back().name, lost = name.substr(0, name.find('@'));
    EXPECT_EQ(gate(folder, {"--accept", "--only", lost, "--reason", "it was one too many"}).code, 0);
}

TEST(Gate, AFamilyThatIsRedAsAWholeLeavesRoomForTheOthers) {
    const Scratch folder;
    keep(folder / "old.db", "aaaa", usual());
    Findings after = usual();
    for (auto& result : after.results)
        if (result.family == ApiFamily::bwd) result.outcome = Outcome::failed;
    after.resources[0].scratch_bytes = 48;
    keep(folder / "new.db", "bbbb", after);
    const Ran ran = gate(folder, {"--html", folder / "gate.html"});
    EXPECT_THAT(ran.out, HasSubstr("bwd             RED 30"));
    EXPECT_THAT(ran.out, HasSubstr("  … and 25 more not_green (--junit, --html and --json have all)\n"));
    EXPECT_THAT(ran.out, HasSubstr("RED, 31 findings: 30 not_green, 1 spill\n"));
    EXPECT_LT(std::ranges::count(ran.out, '\n'), 30);
    const std::string page = system::read_file(folder / "gate.html");
    EXPECT_LT(page.find(">spill<"), page.find("<details>")) << "it comes after all of backward";
}

TEST(Gate, ASeriesThatWasNotRunIsRedAndNothingIsRed) {
    const Scratch folder;
    keep(folder / "old.db", "aaaa", usual());
    { const store::Store empty(folder / "new.db", store::Access::write); }
    const Ran ran = gate(folder);
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.out, HasSubstr("series_lost verify host gfx950"));
    const Ran nothing = test::run({"gate", "--store", folder / "new.db", "--against", folder / "new.db",
                                   "--junit", folder / "junit", "--html", folder / "gate.html"});
    EXPECT_EQ(nothing.code, 1);
    EXPECT_THAT(nothing.out, HasSubstr("RED, nothing was compared"));
    EXPECT_THAT(system::read_file(folder / "junit/gate.xml"),
                AllOf(HasSubstr("failures=\"1\""), HasSubstr("<testsuite name=\"nothing against nothing\""),
                      HasSubstr("<failure type=\"gate\" message=\"nothing was compared\"")));
    EXPECT_THAT(system::read_file(folder / "gate.html"), HasSubstr("<h2>nothing against nothing: "));
}

TEST(Gate, AFileThatIsNoStoreStaysAsItIs) {
    const Scratch folder;
    keep(folder / "old.db", "aaaa", usual());
    for (const std::vector<std::string>& more :
         {std::vector<std::string>{}, {"--accept", "--reason", "right"}}) {
        const Ran missing = gate(folder, more);
        EXPECT_THAT(missing.err, HasSubstr("new.db: there is no such file"));
        EXPECT_FALSE(std::filesystem::exists(folder / "new.db"));
    }
    system::write_file(folder / "new.db", "");
    for (const std::vector<std::string>& more :
         {std::vector<std::string>{}, {"--accept", "--reason", "right"}}) {
        const Ran empty = gate(folder, more);
        EXPECT_EQ(empty.code, 2);
        EXPECT_THAT(empty.err, HasSubstr("new.db: is empty, it is no store"));
        EXPECT_EQ(std::filesystem::file_size(folder / "new.db"), 0U);
    }
}

TEST(Gate, AFullDiskTakesOneFileAndNoOther) {
    const Scratch folder;
    keep(folder / "old.db", "aaaa", usual());
    keep(folder / "new.db", "bbbb", usual());
    const Ran ran = gate(folder, {"--html", "/dev/full", "--json", folder / "gate.json"});
    EXPECT_EQ(ran.code, 2);
    EXPECT_THAT(ran.err, HasSubstr("/dev/full: cannot be written: No space left on device"));
    EXPECT_THAT(system::read_file(folder / "gate.json"), HasSubstr("\"green\": true"));
}

TEST(Gate, ComparesCommitsWithinAStoreAndWritesReports) {
    const Scratch folder;
    const std::string file = folder / "new.db";
    keep(file, "aaaa", usual());
    Findings after = usual();
    after.results[7].outcome = Outcome::failed;
    after.results[7].message = "<script>alert(1)</script>";
    keep(file, "bbbb", after);
    for (const char* against : {"previous", "aa"}) {
        const Ran ran =
            test::run({"gate", "--store", file, "--against", against, "--junit", folder / "junit", "--html",
                       folder / "gate.html", "--json", folder / "gate.json", "--family", "fwd"});
        EXPECT_EQ(ran.code, 1) << ran.err;
        EXPECT_THAT(ran.out, HasSubstr("not_green   fwd/case7"));
        EXPECT_THAT(ran.out, Not(HasSubstr("bwd")));
    }
    const std::string xml = system::read_file(folder / "junit/fwd.xml");
    EXPECT_THAT(xml, HasSubstr("failures=\"1\""));
    EXPECT_FALSE(std::filesystem::exists(folder / "junit/bwd.xml"));
    EXPECT_THAT(system::read_file(folder / "junit/gate.xml"), HasSubstr("failures=\"0\""));
    const std::string html = system::read_file(folder / "gate.html");
    EXPECT_THAT(
        html,
        HasSubstr("fwd/case7</td><td class=\"said\">passed</td><td class=\"said\">failed: &lt;script&gt;"));
    EXPECT_THAT(html, Not(HasSubstr("<script")));
    EXPECT_THAT(system::read_file(folder / "gate.json"), HasSubstr("\"green\": false"));
    EXPECT_THAT(
        test::run({"gate", "--store", file, "--against", "zzzz"}).err,
        HasSubstr(
            "has no finished run of a commit that begins with \"zzzz\", and there is no file of that name"));
    for (const char* budget : {"slow=3", "slower=5x", "slower= 5", "slower=", "margin=-1"})
        EXPECT_EQ(test::run({"gate", "--store", file, "--against", "previous", "--budget", budget}).code, 2)
            << budget;
    EXPECT_EQ(test::run({"gate", "--store", file, "--against", "previous", "--family", "x"}).code, 2);
}

// A program that was built with changes nobody committed says the same commit as the one before.
TEST(Gate, ARedRunIsNotComparedWithItselfBecauseOfItsCommit) {
    const Scratch folder;
    const std::string file = folder / "new.db";
    for (const Outcome outcome : {Outcome::passed, Outcome::failed}) {
        store::RunRecord run = run_of(store::RunKind::verify, "aaaa");
        run.identity["program_sha256"] = to_string(outcome);
        store::Recording recording(file, run);
        std::mt19937 random(1);
        for (harness::CaseResult& result : some_cases(random)) {
            result.outcome = outcome;
            recording.add(result.name, {&result, 1});
        }
        recording.finish(1.0, "green");
    }
    for (const char* against : {"previous", "aaaa"}) {
        const Ran ran = test::run({"gate", "--store", file, "--against", against});
        EXPECT_EQ(ran.code, 1) << against;
        EXPECT_THAT(ran.out, HasSubstr("aaaa against aaaa: RED, 60 findings")) << against;
    }
}

TEST(Gate, OneRunOnBothSidesIsNoComparison) {
    const Scratch folder;
    keep(folder / "new.db", "aaaa", usual());
    const std::string file = folder / "new.db";
    const Ran ran = test::run({"gate", "--store", file, "--against", file});
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.out, HasSubstr(" stands on both sides, and was not compared with itself"));
    EXPECT_EQ(test::run({"gate", "--store", file, "--against", file, "--html", folder / "gate.html"}).code,
              1);
    EXPECT_THAT(system::read_file(folder / "gate.html"), HasSubstr("<p>Nothing was compared.</p>"));
}

} // namespace
} // namespace fmha::cli
