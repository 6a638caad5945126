// The example programs of a checkout beside our kernels. A shell script stands in for the programs: right, wrong, without a kernel,
// silent, hanging, crashing and missing.

#include "dispatcher/system/files.hpp"
#include "harness/cases/load.hpp"
#include "harness/run/catalogue_kernels.hpp"
#include "parity/side_by_side/agreement.hpp"
#include "tests/harness/command_support.hpp"

#include <gmock/gmock.h>

#include <fmt/ranges.h>

namespace fmha::parity {
namespace {

using cli::test::Ran;
using cli::test::Scratch;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

/// A folder of programs that all run `script`.
void fake_programs(const std::string& folder, const std::string& script) {
    for (const char* name : {"tile_example_fmha_fwd", "tile_example_fmha_bwd"}) {
        const std::filesystem::path program = std::filesystem::path(folder) / name;
        std::filesystem::create_directories(folder);
        system::write_file(program, "#!/bin/sh\n" + script + "\n");
        std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    }
}

constexpr const char* right =
    "echo '[fp16|batch|bhsd] b:2, h:2/2, 0.031 ms, 12.50 TFlops, 800.00 GB/s, valid:y'";

Ran compare_with(const std::string& script, std::vector<std::string> more) {
    Scratch scratch;
    fake_programs(scratch / "bin", script);
    std::vector<std::string> arguments{
        "compare", "--cases-root", FMHA_CASES_DIR, "--ck-bin", scratch / "bin", "--seconds", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return cli::test::run(arguments);
}

const std::string one = "fwd/parity[seqlen_q=64,seqlen_k=256]@1";

harness::Case case_of(const std::string& name) {
    return harness::load_case(name, FMHA_CASES_DIR);
}
std::string first_name(const std::string& stem) {
    return harness::load_cases({stem}, {.root = FMHA_CASES_DIR, .tier = harness::Tier::nightly}).front().id;
}

TEST(SideBySide, AllFourteenConfigurationsHaveArguments) {
    const auto cases = harness::load_cases({"fwd/parity"}, {.root = FMHA_CASES_DIR});
    std::set<std::string> asked;
    for (const auto& c : cases) {
        const TileExample example = tile_example(c);
        EXPECT_EQ(example.cannot, "") << c.id;
        std::string text;
        for (const auto& argument : example.arguments)
            if (!argument.starts_with("-seed") && !argument.starts_with("-init")) text += argument + ' ';
        asked.insert(text);
    }
    EXPECT_EQ(asked.size(), 14);
}

TEST(SideBySide, ArgumentsSayTheCase) {
    const auto has = [](const std::string& name, std::initializer_list<const char*> arguments) {
        const auto example = tile_example(case_of(name));
        for (const char* argument : arguments)
            EXPECT_THAT(example.arguments, Contains(std::string(argument))) << name << "\n" << example.cannot;
        return example;
    };
    const auto forward =
        has(first_name("fwd/parity"), {"-prec=fp16", "-b=2", "-h=2", "-h_k=2", "-s=128", "-s_k=128", "-d=128",
                                       "-mask=0", "-bias=n", "-lse=0", "-vlayout=r", "-mode=0", "-v=1"});
    EXPECT_EQ(forward.program, "tile_example_fmha_fwd");
    harness::Case c = case_of(first_name("fwd/parity"));
    c.family = ApiFamily::bwd;
    c.mode = Mode::group;
    c.batch = 3;
    c.seqlen_q = {5, 0, 70};
    c.seqlen_k = {9};
    c.physical_q = {8, 8, 80};
    c.mask = MaskType::bottom_right;
    c.window_left = 3;
    c.window_right = 4;
    c.bias = BiasType::alibi;
    c.bias_rank = 1;
    c.backward.deterministic = true;
    c.p_drop = 0.2;
    c.dropout_seed = 77;
    const TileExample backward = tile_example(c);
    EXPECT_EQ(backward.program, "tile_example_fmha_bwd");
    for (const char* argument : {"-mode=1", "-s=5,0,70", "-s_k=9,9,9", "-s_qpad=8,8,80", "-mask=b:3,4",
                                 "-bias=a:1", "-deterministic=1", "-p_drop=0.2", "-drop_seed=77"})
        EXPECT_THAT(backward.arguments, Contains(std::string(argument)));
    EXPECT_THAT(backward.arguments, Not(Contains(HasSubstr("-lse"))));
    c = case_of(first_name("fwd/parity"));
    c.seqlen_k = {30, 100};
    EXPECT_THAT(tile_example(c).arguments, AllOf(Contains("-s_k=100"), Contains("-kv_eff_lens=30,100")));
}

TEST(SideBySide, WhatTheProgramsHaveNoOptionForIsSaid) {
    harness::Case c = case_of(first_name("fwd/parity"));
    c.mask = MaskType::window_generic;
    EXPECT_THAT(tile_example(c).cannot, HasSubstr("M-7"));
    EXPECT_THAT(tile_example(case_of(first_name("batch_prefill/plain"))).cannot, HasSubstr("batch prefill"));
    EXPECT_TRUE(tile_example(c).arguments.empty());
}

TEST(SideBySide, AnswersAreRead) {
    const std::chrono::seconds limit(7);
    const auto read = [&](int code, const std::string& out, const std::string& err = "") {
        return read_answer({.exit_code = code, .out = out, .err = err}, limit);
    };
    EXPECT_EQ(read(0, "[fp16] b:2, 0.031 ms, 12.5 TFlops, 8 GB/s, valid:y\n").verdict, Verdict::right);
    EXPECT_EQ(read(0, "[fp16] b:2, 0.031 ms, 12.5 TFlops, 8 GB/s, valid:y\n").milliseconds, 0.031);
    EXPECT_EQ(read(254, "[fp16], 0.031 ms, 12.5 TFlops, 8 GB/s, valid:n\n").verdict, Verdict::wrong);
    EXPECT_EQ(read(0, "[fp16], 0.031 ms, 12.5 TFlops, 8 GB/s, valid:n\n").verdict, Verdict::wrong);
    EXPECT_EQ(read(254, "[fp16] b:2, not supported yet\n").verdict, Verdict::declined);
    EXPECT_EQ(read(255, "", "Invalid argument: invalid mask value: q\n").verdict, Verdict::declined);
    EXPECT_EQ(read(0, "[fp16] b:2, 0.031 ms, 12.5 TFlops, 8 GB/s\n").verdict, Verdict::silent);
    EXPECT_EQ(read(0, "").verdict, Verdict::silent);
    EXPECT_EQ(read(139, "[fp16] b:2, valid:y").verdict, Verdict::crashed);
    EXPECT_EQ(read(1, "[fp16] b:2, valid:y").verdict, Verdict::crashed)
        << "a verdict before a bad end is none";
    system::ProcessResult hang;
    hang.timed_out = true;
    EXPECT_EQ(read_answer(hang, limit).sentence, "it did not end within 7 s");
}

TEST(SideBySide, TwoRightAnswersAgree) {
    const Ran ran = compare_with(right, {one});
    EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("both_right           fwd/parity["));
    EXPECT_THAT(ran.out, HasSubstr("1 asked   1 both_right\nGREEN\n"));
}

TEST(SideBySide, EveryOtherAnswerIsNamed) {
    struct Line {
        const char *script, *agreement, *sentence;
    };
    for (const Line& line :
         {Line{"echo ', 1.0 ms, 2 TFlops, 3 GB/s, valid:n'; exit 254", "only_ours_right", "theirs wrong"},
          Line{"exit 0", "no_answer", "neither valid:y nor valid:n"},
          Line{"sleep 60", "no_answer", "did not end within 1 s"},
          Line{"kill -SEGV $$", "no_answer", "signal 11 ended it"}}) {
        const Ran ran = compare_with(line.script, {one});
        EXPECT_EQ(ran.code, 1) << line.script;
        EXPECT_THAT(ran.out, AllOf(HasSubstr(line.agreement), HasSubstr(line.sentence), HasSubstr("\nRED\n"),
                                   HasSubstr("/bin/tile_example_fmha_fwd -v=1")));
    }
    const Ran declined = compare_with("echo ', not supported yet'; exit 254", {one});
    EXPECT_EQ(declined.code, 0);
    EXPECT_THAT(declined.out, HasSubstr("only_ours_computes"));
}

TEST(SideBySide, NothingComparedIsRed) {
    const Ran ran = compare_with(right, {first_name("batch_prefill/plain")});
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.out, HasSubstr("nothing was compared"));
}

TEST(SideBySide, AMissingProgramIsBadInput) {
    Scratch scratch;
    const Ran ran =
        cli::test::run({"compare", "--cases-root", FMHA_CASES_DIR, "--ck-bin", scratch / "nowhere", one});
    EXPECT_EQ(ran.code, 2);
    EXPECT_THAT(ran.err, HasSubstr("there is no tile_example_fmha_fwd; build it in the checkout"));
}

TEST(SideBySide, WrongKernelsOfOursAreFound) {
    const auto ours = [](harness::Outcome outcome) {
        harness::CaseResult result;
        result.outcome = outcome;
        result.message = "G1";
        return result;
    };
    Answer theirs;
    theirs.verdict = Verdict::right;
    EXPECT_EQ(compare(ours(harness::Outcome::failed), theirs).agreement, Agreement::only_theirs_right);
    EXPECT_EQ(compare(ours(harness::Outcome::crashed), theirs).agreement, Agreement::only_theirs_right);
    EXPECT_EQ(compare(ours(harness::Outcome::refused_unexpectedly), theirs).agreement,
              Agreement::only_theirs_computes);
    EXPECT_EQ(compare(ours(harness::Outcome::not_run), theirs).agreement, Agreement::not_compared);
    theirs.verdict = Verdict::declined;
    EXPECT_EQ(compare(ours(harness::Outcome::refused_as_predicted), theirs).agreement,
              Agreement::both_declined);
    EXPECT_EQ(compare(ours(harness::Outcome::failed), theirs).agreement, Agreement::both_wrong);
    for (const Agreement red : {Agreement::only_theirs_right, Agreement::only_ours_right,
                                Agreement::both_wrong, Agreement::no_answer, Agreement::only_theirs_computes})
        EXPECT_TRUE(is_red(red));
}

TEST(SideBySide, TheJsonHasCommandsAndAnswers) {
    Scratch scratch;
    fake_programs(scratch / "bin", right);
    const Ran ran = cli::test::run({"compare", "--cases-root", FMHA_CASES_DIR, "--ck-bin", scratch / "bin",
                                    "--json", scratch / "beside.json", one});
    EXPECT_EQ(ran.code, 0);
    const std::string json = system::read_file(scratch / "beside.json");
    EXPECT_THAT(json, AllOf(HasSubstr("\"their_milliseconds\": 0.031"), HasSubstr("-s_k=256"),
                            HasSubstr("\"agreement\": \"both_right\"")));
}

} // namespace
} // namespace fmha::parity
