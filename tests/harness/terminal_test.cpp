// Long work shows its progress on a terminal, and nothing elsewhere.

#include "dispatcher/types/visible_text.hpp"
#include "harness/cli/paint.hpp"
#include "harness/cli/progress.hpp"
#include "reports/report.hpp"
#include "tests/harness/command_support.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

namespace fmha::cli {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

TEST(Progress, TellsRateRemainingTimeAndRed) {
    std::ostringstream out;
    Progress progress(out, true, 400, 100, 200);
    const auto start = Progress::Clock::now();
    for (int n = 0; n < 49; ++n) progress.step("a", start);
    progress.red(2);
    progress.step("fwd/masks[mask=t]@1", start + seconds(10));
    EXPECT_THAT(out.str(), HasSubstr("[150/400] 5/s, 50 s left, 2 red   fwd/masks[mask=t]@1"));
}

TEST(Progress, OfWorkThatEndsAtATimeTellsThat) {
    std::ostringstream out;
    Progress progress(out, true, 0, 0, 200);
    const auto start = Progress::Clock::now();
    progress.ends_at(start + seconds(7200));
    progress.step("x", start + seconds(60));
    EXPECT_THAT(out.str(), HasSubstr("[1]"));
    EXPECT_THAT(out.str(), HasSubstr("1 h 59 min left"));
}

TEST(Progress, IsNeverWiderThanTheTerminalAndNeverOnAPipe) {
    std::ostringstream out, pipe;
    Progress narrow(out, true, 10, 0, 20), silent(pipe, false, 10);
    narrow.step(std::string(100, 'x'));
    silent.step("x");
    silent.clear();
    EXPECT_EQ(out.str().size(), std::string("\r\x1b[K").size() + 19);
    EXPECT_EQ(pipe.str(), "");
}

TEST(Progress, OfWorkThatCountsItsStepsKnowsAnotherPart) {
    std::ostringstream out;
    Progress progress(out, true, 0, 0, 200);
    const auto start = Progress::Clock::now();
    progress.at(1, 50, "a", start);
    progress.at(11, 50, "b", start + seconds(10));
    EXPECT_THAT(out.str(), HasSubstr("[11/50] 1.1/s, 35 s left   b"));
    progress.at(1, 4, "again", start + seconds(60));
    EXPECT_THAT(out.str(), HasSubstr("[1/4]   again"));
}

// Each of the commands that work for long, on a terminal and on a pipe.
TEST(Progress, OfEveryLongCommandIsTheSameLine) {
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"parity", "--rules", "house", "--arch", "gfx1201"},
          {"bench", "--shape", "dtype=fp32,batch=1,heads=1,seqlen=16,hdim=32", "--seconds", "0.001"},
          {"verify", "fwd/tiny[hdim=64,seqlen=1,dtype=fp16]@1", "--jobs", "0", "--junit", "/dev/null",
           "--cases-root", FMHA_CASES_DIR},
          {"fuzz", "--count", "2", "--minutes", "0", "--seed", "1", "--jobs", "1", "--cases-root",
           FMHA_CASES_DIR}})
        for (const bool terminal : {true, false}) {
            std::ostringstream out, err;
            run_command_line(words, all_commands(), {out, err, terminal, {}});
            EXPECT_EQ(err.str().find("\r\x1b[K[1") != std::string::npos, terminal)
                << words.front() << err.str();
        }
}

TEST(Progress, WritesNotMoreOftenThanAnybodyReads) {
    std::ostringstream out;
    Progress progress(out, true, 100'000, 0, 80);
    const auto start = Progress::Clock::now();
    for (int n = 0; n < 1000; ++n) progress.step("x", start + std::chrono::milliseconds(n));
    EXPECT_LE(std::ranges::count(out.str(), '\r'), 11);
}

TEST(Hostile, TextGivesNoOrdersToATerminal) {
    EXPECT_EQ(visible("a\tb\n°"), "a\tb\n°");
    EXPECT_EQ(visible("\x1b]0;owned\x07\x7f\r"), "\\x1b]0;owned\\x07\\x7f\\x0d");
    EXPECT_EQ(visible("\xc2\x9b 31m \xc2"), "\\x9b 31m \xc2");
    EXPECT_EQ(visible_line("a\tb\nGREEN°\x1b"), "a\\x09b\\x0aGREEN°\\x1b");
    const std::string hostile = "\x1b]0;owned\x07";

    std::ostringstream out;
    Progress(out, true, 2, 0, 200).step(hostile);
    EXPECT_THAT(out.str(), Not(HasSubstr(hostile)));

    harness::CaseResult result;
    result.name = result.about = result.kernel = result.message = result.pattern = result.reproduce = hostile;
    result.outcome = harness::Outcome::failed;
    EXPECT_EQ(reports::failure_text(result).find('\x1b'), std::string::npos);
    // Nor does a name pretend to be a line of its own.
    result.name = result.about = result.kernel = result.pattern = "a\nGREEN";
    const std::vector<harness::CaseResult> red(5, result);
    EXPECT_THAT(reports::failures_text(red), AllOf(HasSubstr("a\\x0aGREEN"), Not(HasSubstr("\nGREEN"))));
    result.outcome = harness::Outcome::not_run;
    harness::Ledger ledger;
    ledger.add(result);
    EXPECT_THAT(ledger.text(), AllOf(HasSubstr("a\\x0aGREEN"), Not(HasSubstr("\nGREEN"))));
    ledger.object("a\nGREEN\x1b");
    EXPECT_THAT(ledger.text(), testing::EndsWith("RED: a\\x0aGREEN\\x1b\n"));

    for (const std::vector<std::string>& words :
         {std::vector<std::string>{hostile}, {"verify", hostile}, {"verify", "--" + hostile}}) {
        const test::Ran ran = test::run(words);
        EXPECT_EQ(ran.code, 2);
        EXPECT_THAT(ran.err, AllOf(HasSubstr("\\x1b]0;owned\\x07"), Not(HasSubstr(hostile))));
    }
}

TEST(Hostile, HeadersOfTensorFilesGiveNoneEither) {
    const test::Scratch folder;
    std::string header = "{'descr': '\x1b[2J', 'fortran_order': False, 'shape': (1,), }";
    std::string file("\x93NUMPY\x01\0", 8);
    file += static_cast<char>(header.size());
    file += '\0';
    std::ofstream(folder / "q.npy", std::ios::binary) << file + header;
    const test::Ran ran =
        test::run({"check", "--case", "fwd/tiny[hdim=8,seqlen=1,dtype=fp32]@1", "--cases-root",
                   FMHA_CASES_DIR, "--tensors", folder / "", "--outputs", folder / ""});
    EXPECT_EQ(ran.code, 2);
    EXPECT_THAT(ran.err,
                AllOf(HasSubstr("q.npy: dtype '\\x1b[2J' is not exchanged"), Not(HasSubstr("\x1b"))));
}

TEST(Help, FitsATerminalOfEightyColumns) {
    std::vector<std::vector<std::string>> calls{{"--help"}};
    for (const auto& command : all_commands()) calls.push_back({std::string(command->name()), "--help"});
    for (const auto& call : calls) {
        const std::string help = test::run(call).out;
        std::istringstream lines(help.substr(0, help.find("\nExample:")));
        std::size_t texts = 0;
        for (std::string line; std::getline(lines, line);) {
            // Names that need more than their column stand on a line of their own.
            texts += line.starts_with(std::string(30, ' ')) ? 1U : 0U;
            if (line.starts_with("Usage:") || line.starts_with("  -")) continue;
            EXPECT_LE(line.size(), 80U) << call.front() << ": " << line;
        }
        EXPECT_GT(texts, 0U) << call.front();
    }
}

TEST(Duration, HasTwoUnitsAtMost) {
    EXPECT_EQ(duration_text(12.4), "12 s");
    EXPECT_EQ(duration_text(725.0), "12 min 5 s");
    EXPECT_EQ(duration_text(12'000.0), "3 h 20 min");
    EXPECT_EQ(duration_text(-1.0), "0 s");
}

TEST(Paint, ColoursVerdictsOnly) {
    const std::string text = "FAILED fwd/x@1\n  why  FAILED\nGREEN\nREDUCED\nRED: nothing\n";
    EXPECT_EQ(painted(text, false), text);
    EXPECT_EQ(painted(text, true),
              "\x1b[31;1mFAILED\x1b[0m fwd/x@1\n  why  "
              "FAILED\n\x1b[32;1mGREEN\x1b[0m\nREDUCED\n\x1b[31;1mRED\x1b[0m: nothing\n");
}

TEST(Paint, OnATerminalThatWantsColours) {
    EXPECT_TRUE(wants_colours(true, nullptr));
    EXPECT_TRUE(wants_colours(true, ""));
    EXPECT_FALSE(wants_colours(true, "1"));
    EXPECT_FALSE(wants_colours(false, nullptr));
}

// Editors and some CI systems run programs on a terminal that shows every order as text.
TEST(Paint, NoOrdersForADumbTerminal) {
    EXPECT_TRUE(takes_orders(true, nullptr));
    EXPECT_TRUE(takes_orders(true, "xterm-256color"));
    EXPECT_FALSE(takes_orders(true, "dumb"));
    EXPECT_FALSE(takes_orders(false, "xterm-256color"));
}

} // namespace
} // namespace fmha::cli
