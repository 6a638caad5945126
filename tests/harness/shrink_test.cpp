// A red case becomes the smallest case that is red by the same mark, and every field that it keeps has a reason.

#include "harness/shrink/shrink.hpp"

#include "dispatcher/types/error.hpp"
#include "harness/cases/load.hpp"
#include "harness/cases/plain_case.hpp"
#include "harness/run/planned_kernels.hpp"
#include "harness/shrink/steps.hpp"
#include "kernels/targets/host/faults/fault.hpp"
#include "tests/harness/command_support.hpp"
#include "tests/harness/shrinking.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <csignal>
#include <thread>
#include <unistd.h>

namespace fmha::harness::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::filesystem::path root = FMHA_CASES_DIR;

CaseResult result_of(const Case& c, bool green, const std::string& gate = "G1",
                     const std::string& tensor = "o") {
    CaseResult result;
    result.name = c.id;
    result.outcome = green ? Outcome::passed : Outcome::failed;
    result.gates.push_back({.gate = gate, .tensor = tensor, .passed = green, .ratio = green ? 0.5 : 2.0});
    return result;
}

/// Red by G1 o where `is_red` says so.
CaseJudge judge_by(std::function<bool(const Case&)> is_red) {
    return [is_red = std::move(is_red)](const Case& c) { return std::vector{result_of(c, !is_red(c))}; };
}

Case forward_case(const std::string& overrides) {
    return load_case(fmt::format("fwd/faults[{}]@5", overrides), root);
}

std::optional<Shrunk> shrunk_forward(const std::string& overrides, const CaseJudge& judge,
                                     const ShrinkOptions& options = {}) {
    return shrink(forward_case(overrides), plain_case(ApiFamily::fwd, root), judge, options);
}

TEST(Shrink, FindsTheEdgeAndTheFeaturesThatDecide) {
    const auto judge = judge_by([](const Case& c) {
        return std::ranges::max(c.seqlen_k) >= 65 && c.mask == MaskType::top_left && c.nhead_q > c.nhead_k;
    });
    const auto shrunk =
        shrunk_forward("mask=t:40,9,3,bias=a:1,dtype=bf16,p_drop=0.2,dropout_seed=7,seqlen_k=[130,70],"
                       "mode=group,physical_k=[140,80],length_form_k=seqlen,heads=8:2",
                       judge);
    ASSERT_TRUE(shrunk);
    EXPECT_EQ(shrunk->smallest.id, "fwd/plain[nhead_q=2,seqlen_k=65,mask=t]@1");
    EXPECT_TRUE(shrunk->complete);
    ASSERT_EQ(shrunk->needed.size(), 3U);
    EXPECT_EQ(shrunk->needed[1].field, "seqlen_k");
    EXPECT_EQ(shrunk->needed[1].why, "green with 1, green with 64");
    const std::string text = to_text(*shrunk, "fmha verify X");
    for (const char* part : {"SMALLER fwd/plain[nhead_q=2,seqlen_k=65,mask=t]@1", "red by   G1 o",
                             "needs    mask=t: green with 0", "repeat   fmha verify X"})
        EXPECT_THAT(text, HasSubstr(part));
}

TEST(Shrink, TwoFieldsGoForOneMoreKeyThatDoesAsMuch) {
    const auto judge = judge_by([](const Case& c) {
        return std::ranges::max(c.seqlen_k) >= 2 || (c.mask == MaskType::top_left && c.nhead_q > c.nhead_k);
    });
    const auto shrunk = shrunk_forward("mask=t,seqlen=1:70,heads=8:2", judge);
    ASSERT_TRUE(shrunk);
    EXPECT_EQ(shrunk->smallest.id, "fwd/plain[seqlen_k=2]@1");
}

TEST(Shrink, OfAnAlwaysRedKernelThePlainCaseIsLeft) {
    const auto shrunk = shrunk_forward("mask=b,seqlen=70:130", judge_by([](const Case&) { return true; }));
    ASSERT_TRUE(shrunk);
    EXPECT_EQ(shrunk->smallest.id, "fwd/plain@1");
    EXPECT_THAT(to_text(*shrunk, ""), HasSubstr("needs    nothing"));
}

TEST(Shrink, AGreenCaseIsNotMadeSmaller) {
    EXPECT_FALSE(shrunk_forward("mask=b", judge_by([](const Case&) { return false; })));
}

TEST(Shrink, FollowsItsOwnGateOnly) {
    // Shorter than 100 keys, another gate is red; the way there is not taken.
    const CaseJudge judge = [](const Case& c) {
        const bool is_long = std::ranges::max(c.seqlen_k) >= 100;
        return std::vector{result_of(c, false, is_long ? "G1" : "G3", is_long ? "o" : "lse")};
    };
    const auto shrunk = shrunk_forward("seqlen=70:130", judge);
    ASSERT_TRUE(shrunk);
    EXPECT_EQ(shrunk->smallest.id, "fwd/plain[seqlen_k=100]@1");
    EXPECT_EQ(shrunk->needed.front().why, "red by G3 lse with 1, red by G3 lse with 99");
}

TEST(Shrink, WhatCannotBeRunIsNoSmallerCase) {
    const CaseJudge judge = [](const Case& c) -> std::vector<CaseResult> {
        if (c.batch < 2) throw InputError(c.id + ": this cannot be laid out");
        return {result_of(c, false)};
    };
    const auto shrunk = shrunk_forward("mask=b", judge);
    ASSERT_TRUE(shrunk);
    EXPECT_EQ(shrunk->smallest.id, "fwd/plain[batch=2]@1");
    EXPECT_EQ(shrunk->needed.front().why, "not a case: this cannot be laid out with 1");
}

TEST(Shrink, StopsInTimeWithTheSmallestSoFar) {
    const CaseJudge judge = [](const Case& c) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        return std::vector{result_of(c, c.mask == MaskType::no_mask)};
    };
    const auto shrunk =
        shrunk_forward("mask=t:40,9,bias=a:1", judge, {.patience = std::chrono::milliseconds(1)});
    ASSERT_TRUE(shrunk);
    EXPECT_FALSE(shrunk->complete);
    EXPECT_THAT(to_text(*shrunk, ""), HasSubstr("the time was up"));
}

TEST(Shrink, ARefusalIsKnownByItsRule) {
    CaseResult refused;
    refused.outcome = Outcome::refused_unexpectedly;
    refused.refused_by = RefusedBy::problem;
    refused.refusal = "P-3";
    refused.message = "P-3: entry 1 has 257 keys and room for 256";
    const RedMark mark(refused);
    EXPECT_EQ(mark.text(), "refused unexpectedly: P-3");
    EXPECT_TRUE(mark.is_on(refused));
    CaseResult other = refused;
    other.refusal = "P-4";
    other.message = "P-4: page_size 200 is not a positive multiple of 128";
    EXPECT_FALSE(mark.is_on(other));
    other.refusal = "P-3";
    other.message = "P-3: entry 0 has 9 keys and room for 8";
    EXPECT_TRUE(mark.is_on(other));
    other.message = "P-3: is_gappy needs the array seqlen_k";
    EXPECT_FALSE(mark.is_on(other)) << "a rule refuses for several reasons";
}

// Whatever the sentence says about the problem, the field is the same.
TEST(Shrink, ARefusalOfAllKernelsIsKnownByTheFieldThatTheNearestDoesNotTake) {
    CaseResult refused;
    refused.outcome = Outcome::refused_unexpectedly;
    refused.refused_by = RefusedBy::kernels;
    EXPECT_EQ(RedMark(refused).text(), "refused unexpectedly: no kernel");
    refused.refusal = "seqlen_q";
    refused.message = "no complete plan for 3 rows";
    EXPECT_EQ(RedMark(refused).text(), "refused unexpectedly: no kernel: seqlen_q");
    EXPECT_EQ(ending(refused), "no kernel: seqlen_q");
    CaseResult other = refused;
    other.message = "no complete plan for 17 rows of another problem";
    EXPECT_TRUE(RedMark(refused).is_on(other));
    other.refusal = "hdim_q";
    EXPECT_FALSE(RedMark(refused).is_on(other));
}

TEST(Shrink, ARefusedLaunchAndACrashAreKnownByTheirReasons) {
    CaseResult refused;
    refused.outcome = Outcome::failed;
    refused.refused_by = RefusedBy::launch;
    refused.message = "the launch was refused: logits_soft_cap is 0, the kernel was built with it";
    CaseResult other = refused;
    other.message = "the launch was refused: 3 rows do not fit";
    EXPECT_FALSE(RedMark(refused).is_on(other));
    refused.message = "the launch was refused: 17 rows do not fit";
    EXPECT_TRUE(RedMark(refused).is_on(other));

    CaseResult crashed;
    crashed.outcome = Outcome::crashed;
    crashed.message = "killed by signal 11 (Segmentation fault)";
    EXPECT_EQ(RedMark(crashed).text(), "crashed: killed by signal 11 (Segmentation fault)");
    other = crashed;
    other.message = "killed by signal 8 (Floating point exception)";
    EXPECT_FALSE(RedMark(crashed).is_on(other));
}

TEST(ShrinkCommand, KeepsTheReasonOfARefusal) {
    const auto ran =
        cli::test::run({"shrink", "--cases-root", FMHA_CASES_DIR, "fwd/tiny[hdim=64,heads=8:3]@1"});
    EXPECT_EQ(ran.code, 1) << ran.err;
    // No head at all is refused by the same rule.
    EXPECT_THAT(ran.out, HasSubstr("SMALLER fwd/plain["));
    EXPECT_THAT(ran.out, testing::Not(HasSubstr("nhead_q=0")));
}

TEST(PlainCase, NamesReadBack) {
    for (const auto& c : load_cases({}, {.root = root, .planned_tile = house_tiles("gfx950")})) {
        if (c.id.size() % 5 != 0) continue; // a fifth meets every field
        const Case named = named_by_plain(c, plain_case(c.family, root));
        Case again = load_case(named.id, root);
        again.id = named.id;
        ASSERT_EQ(again, named) << c.id;
    }
}

TEST(PlainCase, AMissingOneIsNamed) {
    const auto missing = [] { static_cast<void>(plain_case(ApiFamily::bwd, "/nowhere")); };
    EXPECT_THAT(missing, testing::ThrowsMessage<InputError>(HasSubstr("/nowhere/bwd/plain.json")));
}

TEST(Steps, AFieldStepLeavesOneFieldLess) {
    const Case plain = plain_case(ApiFamily::fwd, root);
    const Case c = forward_case("mask=t:40,9,bias=a:1,dtype=bf16,p_drop=0.2,seqlen=70:130");
    const auto fields = unplain_fields(c, plain);
    for (const Case& step : field_steps(c, plain))
        EXPECT_EQ(unplain_fields(step, plain).size() + 1, fields.size());
    EXPECT_TRUE(shrinkable_numbers(plain, plain).empty());
    for (const ShrinkableNumber& number : shrinkable_numbers(c, plain))
        for (const std::int64_t value : {number.to.front(), number.to.back()})
            EXPECT_NE(with_number(c, number, value), c) << number.field->name;
}

TEST(Isolated, ACrashIsAResultAndCanBeMadeSmaller) {
    const auto cases = std::vector{load_case("appendkv/plain[seqlen=3:4,page_size=128]@1", root)};
    const auto source =
        kernels_that([](const KernelConfig&, const Invocation&) { std::raise(SIGSEGV); }, cases, "gfx950");
    const CaseRunOptions options;
    const auto shrunk = shrink(cases.front(), plain_case(ApiFamily::fwd_appendkv, root),
                               isolated_judge(*source, options, std::chrono::seconds(20)), {});
    ASSERT_TRUE(shrunk);
    EXPECT_THAT(shrunk->mark.text(), testing::StartsWith("crashed"));
    EXPECT_EQ(shrunk->smallest.id, "appendkv/plain@1");
}

TEST(Isolated, AHangIsNotWaitedForWhenSomebodyStopsIt) {
    const auto cases = std::vector{load_case("appendkv/plain[seqlen=3:4,page_size=128]@1", root)};
    const auto hang = [](const KernelConfig&, const Invocation&) {
        while (true) pause();
    };
    const auto source = kernels_that(hang, cases, "gfx950");
    const CaseRunOptions options;
    const auto start = std::chrono::steady_clock::now();
    const auto stop = [&] {
        return std::chrono::steady_clock::now() > start + std::chrono::milliseconds(300);
    };
    EXPECT_TRUE(isolated_judge(*source, options, std::chrono::minutes(10), stop)(cases.front()).empty());
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

Launch forward_with(targets::Fault fault) {
    return [fault](const KernelConfig& config, const Invocation& args) {
        host_target::run_fwd_with_fault(config, std::get<FwdArgs>(args), fault, {.threads = 1});
    };
}

// One mistake a family; shrink_faults_test.cpp has all of them.
class SeededFault : public testing::TestWithParam<Seeded> {};

TEST_P(SeededFault, ShrinksToThreeFields) {
    expect_small(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Host, SeededFault,
    testing::Values(
        Seeded{"fwd/faults", "fwd", forward_with(targets::Fault::group_offset_off_by_one)},
        Seeded{"pagedkv/faults", "pagedkv", launch_with(targets::CacheFault::neighbours_table_row)},
        Seeded{"splitkv/faults", "splitkv", launch_with(targets::CacheFault::split_edge_late)},
        Seeded{"appendkv/faults", "appendkv", launch_with(targets::AppendFault::tail_not_copied)},
        Seeded{"batch_prefill/faults", "prefill", launch_with(targets::PrefillFault::last_page_dropped)},
        Seeded{"bwd/faults", "bwd", launch_with(targets::BackwardFault::dp_not_dropped), "gfx942"}),
    [](const auto& seeded) { return std::string(seeded.param.name); });

/// A command on kernels with a mistake in forward.
cli::test::Ran run_faulty(std::unique_ptr<cli::Command> (*make)(cli::KernelSourceFactory),
                          targets::Fault fault, const std::vector<std::string>& arguments) {
    std::vector<std::unique_ptr<cli::Command>> commands;
    commands.push_back(make([fault](const auto&, const std::string&, catalog::FamilySet) {
        return kernels_that(forward_with(fault), {load_case("fwd/plain@1", root)}, "gfx950");
    }));
    return cli::test::run(std::move(commands), arguments);
}

constexpr auto make_shrink =
    static_cast<std::unique_ptr<cli::Command> (*)(cli::KernelSourceFactory)>(cli::make_shrink_command);
constexpr auto make_verify =
    static_cast<std::unique_ptr<cli::Command> (*)(cli::KernelSourceFactory)>(cli::make_verify_command);

TEST(ShrinkCommand, PrintsTheSmallerCaseAndItsCommand) {
    const auto ran = run_faulty(make_shrink, targets::Fault::mask_right_too_wide,
                                {"shrink", "--cases-root", FMHA_CASES_DIR, "fwd/faults[mask=t]@1"});
    EXPECT_EQ(ran.code, 1) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("SMALLER fwd/plain[seqlen_k=2,mask=t]@1\n"));
    EXPECT_THAT(ran.out, HasSubstr("repeat   fmha verify 'fwd/plain[seqlen_k=2,mask=t]@1' --arch gfx950"));
}

TEST(ShrinkCommand, SaysThatAGreenCaseIsGreen) {
    const auto ran = run_faulty(make_shrink, targets::Fault::mask_right_too_wide,
                                {"shrink", "--cases-root", FMHA_CASES_DIR, "fwd/faults@1"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("is not red: there is nothing to make smaller"));
}

TEST(ShrinkCommand, DoesNotCallACaseGreenThatNothingRan) {
    const std::string one = "fwd/tiny[hdim=64,seqlen=40000000,dtype=fp32]@1";
    const auto large = cli::test::run({"shrink", "--cases-root", FMHA_CASES_DIR, one});
    EXPECT_EQ(large.code, 2) << large.out;
    EXPECT_THAT(large.err, HasSubstr(one + ": was not run: it needs "));
    const auto named = cli::test::run({"shrink", "--cases-root", FMHA_CASES_DIR, "fwd/faults@1", "--kernels",
                                       "all", "--kernel", "nothing"});
    EXPECT_EQ(named.code, 2) << named.out;
    EXPECT_THAT(named.err, HasSubstr("no kernel that accepts it has the name"));
}

TEST(ShrinkCommand, RefusesSeveralCases) {
    const auto ran = cli::test::run({"shrink", "--cases-root", FMHA_CASES_DIR, "fwd/faults"});
    EXPECT_EQ(ran.code, 2);
    EXPECT_THAT(ran.err, HasSubstr("fwd/faults: is 28 cases; name one of them"));
    EXPECT_EQ(cli::test::run({"shrink", "--seconds", "-1", "fwd/plain@1"}).code, 2);
}

TEST(VerifyShrink, PutsTheSmallerCaseBesideTheRedOne) {
    const auto ran = run_faulty(make_verify, targets::Fault::mask_right_too_wide,
                                {"verify", "--cases-root", FMHA_CASES_DIR, "--shrink", "1", "--html",
                                 "/dev/null", "fwd/faults[mask=t]@1", "fwd/faults[mask=b:40,9]@1"});
    EXPECT_EQ(ran.code, 1) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("SMALLER fwd/plain[seqlen_k=2,mask=t]@1\n"));
    EXPECT_EQ(ran.out.find("SMALLER"), ran.out.rfind("SMALLER"));
}

} // namespace
} // namespace fmha::harness::test
