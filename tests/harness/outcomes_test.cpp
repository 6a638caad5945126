// Every outcome is produced once, the ledger adds up, and green has to be earned.

#include "dispatcher/types/error.hpp"
#include "harness/results/ledger.hpp"
#include "harness/results/result_json.hpp"
#include "kernels/catalog/glob.hpp"
#include "tests/harness/gate_support.hpp"

#include <gmock/gmock.h>

#include <limits>

namespace fmha::harness::test {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

CaseResult only(std::vector<CaseResult> results) {
    EXPECT_EQ(results.size(), 1U);
    return results.front();
}

TEST(Outcomes, PassedAndItsKernel) {
    const CaseResult result = only(run_case(small_case(), FittingHostKernel(), {}));
    EXPECT_EQ(result.outcome, Outcome::passed) << result.message;
    EXPECT_EQ(result.kernel, "fitting");
    EXPECT_EQ(result.reproduce, "fmha verify test/small@1 --arch gfx950");
    CaseRunOptions more;
    more.warm_up = 3;
    EXPECT_EQ(only(run_case(small_case(), FittingHostKernel(), more)).reproduce,
              "fmha verify test/small@1 --arch gfx950 --warmup 3");
}

Case invalid_case() {
    Case c = small_case();
    c.nhead_q = 3;
    c.nhead_k = 2;
    return c;
}

TEST(Outcomes, RefusedAsPredicted) {
    Case c = invalid_case();
    c.expect = Expectation::invalid_problem;
    c.expect_rule = "H-1";
    EXPECT_EQ(only(run_case(c, FittingHostKernel(), {})).outcome, Outcome::refused_as_predicted);
}

TEST(Outcomes, RefusedForAnotherReason) {
    Case c = invalid_case();
    c.expect = Expectation::invalid_problem;
    c.expect_rule = "N-3";
    const CaseResult result = only(run_case(c, FittingHostKernel(), {}));
    EXPECT_EQ(result.outcome, Outcome::refused_unexpectedly);
    EXPECT_THAT(result.message, HasSubstr("refused, but not for N-3: H-1"));
}

TEST(Outcomes, RefusedUnexpectedly) {
    EXPECT_EQ(only(run_case(invalid_case(), FittingHostKernel(), {})).outcome, Outcome::refused_unexpectedly);
    EXPECT_EQ(only(run_case(small_case(), NoKernels(), {})).outcome, Outcome::refused_unexpectedly);
}

// A kernel for the feature would be told that there is none.
TEST(Outcomes, ValuesThatAreZeroInFloatsAreRefused) {
    const auto refusal = [](double Case::*field, double value) {
        Case c = small_case();
        c.data_type = DataType::fp8;
        c.*field = value;
        const CaseResult result = only(run_case(c, FittingHostKernel(), {}));
        EXPECT_EQ(result.outcome, Outcome::refused_unexpectedly);
        return result.message;
    };
    EXPECT_EQ(refusal(&Case::logits_soft_cap, 1e-50),
              "C-1: logits_soft_cap is 1e-50, which is 0 in the floats that kernels take");
    EXPECT_THAT(refusal(&Case::p_drop, 1e-50), testing::StartsWith("D-1: p_drop is 1e-50, which"));
    EXPECT_THAT(refusal(&Case::scale_s, -1e-50), testing::StartsWith("H-3: scale_s is -1e-50, which"));
    EXPECT_THAT(refusal(&Case::scale_o, 1e-46), testing::StartsWith("O-1: scale_o is 1e-46, which"));
}

TEST(Outcomes, NoKernelAsPredicted) {
    Case c = small_case();
    c.expect = Expectation::no_kernel;
    EXPECT_EQ(only(run_case(c, NoKernels(), {})).outcome, Outcome::refused_as_predicted);
}

TEST(Outcomes, ARefusalIsJudgedByItsReasonAndNotByItsWords) {
    // The explanation of every refusal has "hdim_q" somewhere, and its last word is "empty".
    Case c = small_case();
    c.expect = Expectation::no_kernel;
    for (const char* expected : {"hdim_q_too_large", "hdim_q"}) {
        c.expect_rule = expected;
        EXPECT_EQ(only(run_case(c, NoKernels(Reason::hdim_q_too_large), {})).outcome,
                  Outcome::refused_as_predicted);
        for (const auto& other : {NoKernels(Reason::qscale_differs), NoKernels(Reason::hdim_v_too_large),
                                  NoKernels(std::nullopt)})
            EXPECT_EQ(only(run_case(c, other, {})).outcome, Outcome::refused_unexpectedly);
    }
    c.expect_rule = "empty";
    EXPECT_EQ(only(run_case(c, NoKernels(Reason::qscale_differs), {})).outcome,
              Outcome::refused_unexpectedly);
}

class WithoutType final : public KernelSource {
    StageKernel planned(const Problem& problem, const KernelConfig* main) const override {
        return NoKernels(Reason::data_type_differs).planned(problem, main);
    }
    std::vector<StageKernel> accepting(const Problem& problem, const KernelConfig* main) const override {
        return {planned(problem, main)};
    }
    bool has_type(DataType type) const override { return type != DataType::fp8; }
};

class WithoutFamily final : public KernelSource {
    StageKernel planned(const Problem& problem, const KernelConfig* main) const override {
        return NoKernels(Reason::data_type_differs).planned(problem, main);
    }
    std::vector<StageKernel> accepting(const Problem& problem, const KernelConfig* main) const override {
        return {planned(problem, main)};
    }
    bool has_family(KernelFamily family) const override { return family != KernelFamily::fwd; }
};

TEST(Outcomes, AFamilyThatTheListLacksIsTheSame) {
    Case c = small_case();
    const CaseResult result = only(run_case(c, WithoutFamily(), {}));
    EXPECT_EQ(result.outcome, Outcome::type_absent);
    EXPECT_EQ(result.message, "the list of gfx950 has no kernels of family fwd");
    // A problem that no kernel of any architecture may take is refused all the same.
    c.hdim_q = c.hdim_v = 68;
    EXPECT_EQ(only(run_case(c, WithoutFamily(), {})).outcome, Outcome::refused_unexpectedly);
}

TEST(Outcomes, ATypeThatTheHardwareLacksIsAnOutcomeOfItsOwn) {
    Case c = small_case();
    EXPECT_EQ(only(run_case(c, WithoutType(), {})).outcome, Outcome::refused_unexpectedly);
    c.data_type = DataType::fp8;
    const CaseResult result = only(run_case(c, WithoutType(), {}));
    EXPECT_EQ(result.outcome, Outcome::type_absent);
    EXPECT_EQ(result.message, "T-1: gfx950 has no kernels of type fp8");
    // A case about another refusal has not seen it; one about this refusal has.
    c.expect = Expectation::no_kernel;
    c.expect_rule = "hdim_q";
    EXPECT_EQ(only(run_case(c, WithoutType(), {})).outcome, Outcome::type_absent);
    c.expect_rule = "data_type_differs";
    EXPECT_EQ(only(run_case(c, WithoutType(), {})).outcome, Outcome::refused_as_predicted);
}

TEST(Outcomes, AcceptingWhatWasToBeRefusedFails) {
    Case c = small_case();
    c.expect = Expectation::no_kernel;
    EXPECT_EQ(only(run_case(c, FittingHostKernel(), {})).outcome, Outcome::failed);
    c.expect = Expectation::invalid_problem;
    c.expect_rule = "H-1";
    EXPECT_EQ(only(run_case(c, FittingHostKernel(), {})).outcome, Outcome::failed);
}

TEST(Outcomes, AnotherKernelThanExpectedFails) {
    Case c = small_case();
    c.expect_kernel = "*qr_async*";
    const CaseResult result = only(run_case(c, FittingHostKernel(), {}));
    EXPECT_EQ(result.outcome, Outcome::failed);
    EXPECT_EQ(result.message, "planned fitting, expected *qr_async*");
}

class CannotExecute final : public KernelSource {
    StageKernel planned(const Problem&, const KernelConfig*) const override {
        throw UnsupportedInvocation("the target has no such unit");
    }
    std::vector<StageKernel> accepting(const Problem& problem, const KernelConfig* main) const override {
        return {planned(problem, main)};
    }
};

TEST(Outcomes, NotRunForAReason) {
    const CaseResult target = only(run_case(small_case(), CannotExecute(), {}));
    EXPECT_EQ(target.outcome, Outcome::not_run);
    EXPECT_EQ(target.not_run_reason, NotRunReason::target_cannot);
    CaseRunOptions little;
    little.memory_limit = 1000;
    const CaseResult memory = only(run_case(small_case(), FittingHostKernel(), little));
    EXPECT_EQ(memory.outcome, Outcome::not_run);
    EXPECT_EQ(memory.not_run_reason, NotRunReason::no_memory);
}

TEST(Outcomes, FurtherLaunchesAreAddedToThoseOfTheCase) {
    const auto launches = [](int of_case, int repeats, int warm_up) {
        Case c = small_case();
        c.repeats = of_case;
        CaseRunOptions options;
        options.repeats = repeats;
        options.warm_up = warm_up;
        int count = 0;
        const CaseResult result =
            only(run_case(c, SpoiledKernel([&count](const FwdArgs&) { ++count; }), options));
        EXPECT_EQ(result.outcome, Outcome::passed) << result.message;
        return count;
    };
    EXPECT_EQ(launches(5, 0, 3) - launches(5, 0, 0), 3);
    EXPECT_EQ(launches(5, 2, 1) - launches(5, 2, 0), 1);
    EXPECT_EQ(launches(1, 0, 1), launches(2, 0, 0));
}

TEST(Outcomes, ALaunchThatRefusesFails) {
    const CaseResult result =
        run_spoiled(small_case(), [](const FwdArgs&) { throw UnsupportedInvocation("wrong alignment"); });
    EXPECT_EQ(result.outcome, Outcome::failed);
    EXPECT_THAT(result.message, HasSubstr("wrong alignment"));
}

CaseResult with(Outcome outcome, const char* kernel = "k", NotRunReason reason = NotRunReason::none) {
    CaseResult result;
    result.outcome = outcome;
    result.kernel = kernel;
    result.not_run_reason = reason;
    return result;
}

TEST(Ledger, AskedIsTheSumOfAllOutcomes) {
    Ledger ledger;
    for (const auto& entry : EnumTable<Outcome>::names)
        ledger.add(with(entry.value, "k", NotRunReason::target_cannot));
    std::int64_t sum = 0;
    for (const auto& entry : EnumTable<Outcome>::names) sum += ledger.count(entry.value);
    EXPECT_EQ(ledger.asked(), 11);
    EXPECT_EQ(sum, ledger.asked());
    EXPECT_EQ(ledger.executed(), 7); // all but not_run, type_absent and refusals
}

TEST(Ledger, OneOfTheseIsRed) {
    for (const Outcome bad : {Outcome::failed, Outcome::mistrusted, Outcome::refused_unexpectedly,
                              Outcome::crashed, Outcome::timed_out, Outcome::passed_unexpectedly}) {
        Ledger ledger;
        ledger.add(with(Outcome::passed));
        EXPECT_TRUE(ledger.green());
        ledger.add(with(bad));
        EXPECT_FALSE(ledger.green()) << to_string(bad);
    }
}

TEST(Ledger, NothingExecutedIsRed) {
    EXPECT_FALSE(Ledger().green());
    EXPECT_THAT(Ledger().text(), HasSubstr("nothing was executed"));
    Ledger skipped({.not_run_budget = 10});
    skipped.add(with(Outcome::not_run, "", NotRunReason::no_memory));
    EXPECT_FALSE(skipped.green());
}

TEST(Ledger, RefusalsAloneAreGreenOfCasesThatAskForThemAndRedOfAList) {
    Ledger cases, list({.of_list = true});
    for (Ledger* each : {&cases, &list}) {
        each->add(with(Outcome::refused_as_predicted, ""));
        EXPECT_EQ(each->executed(), 0);
    }
    EXPECT_TRUE(cases.green());
    EXPECT_FALSE(list.green());
    EXPECT_THAT(list.text(),
                HasSubstr("RED: nothing was executed, every kernel that was asked for is refused\n"));
    list.add(with(Outcome::passed));
    EXPECT_TRUE(list.green());
    // Beside cases that were not run they are no run.
    cases.add(with(Outcome::type_absent, ""));
    EXPECT_FALSE(cases.green());
    EXPECT_THAT(cases.text(), HasSubstr("RED: nothing was executed\n"));
}

TEST(Ledger, AnObjectionIsRedAndSaysWhy) {
    Ledger ledger;
    ledger.add(with(Outcome::passed));
    ledger.object("shard 2 is missing");
    ledger.object("shard 3 is damaged");
    EXPECT_FALSE(ledger.green());
    EXPECT_TRUE(ledger.red());
    EXPECT_THAT(ledger.text(), EndsWith("RED: shard 2 is missing\nRED: shard 3 is damaged\n"));
}

TEST(Ledger, AnAbsentTypeIsCountedApartAndAStrictRunRefusesIt) {
    Ledger ledger, strict({.strict = true});
    for (Ledger* each : {&ledger, &strict}) {
        each->add(with(Outcome::passed));
        EXPECT_TRUE(each->green());
        each->add(with(Outcome::type_absent, ""));
    }
    EXPECT_TRUE(ledger.green());
    EXPECT_EQ(ledger.executed(), 1);
    EXPECT_EQ(ledger.count(Outcome::refused_as_predicted), 0);
    EXPECT_THAT(ledger.text(), HasSubstr("1 type absent"));
    EXPECT_THAT(ledger.text(), HasSubstr("--strict makes this red"));
    EXPECT_FALSE(strict.green());
    EXPECT_THAT(strict.text(), HasSubstr("RED: 1 of an absent type, and the run is strict"));
    // A run of such cases alone has shown nothing.
    Ledger alone;
    alone.add(with(Outcome::type_absent, ""));
    EXPECT_FALSE(alone.green());
    EXPECT_THAT(alone.text(), HasSubstr("RED: nothing was executed"));
}

TEST(Ledger, RedIsForGood) {
    Ledger ledger({.not_run_budget = 1});
    EXPECT_FALSE(ledger.red()) << "what is empty may still become green";
    ledger.add(with(Outcome::not_run, "", NotRunReason::no_memory));
    EXPECT_FALSE(ledger.red());
    ledger.add(with(Outcome::not_run, "", NotRunReason::no_memory));
    EXPECT_TRUE(ledger.red());
    ledger.add(with(Outcome::passed));
    EXPECT_TRUE(ledger.red());
}

TEST(Ledger, NotRunHasABudgetAndAReason) {
    Ledger ledger({.not_run_budget = 1});
    ledger.add(with(Outcome::passed));
    ledger.add(with(Outcome::not_run, "", NotRunReason::no_memory));
    EXPECT_TRUE(ledger.green());
    ledger.add(with(Outcome::not_run, "", NotRunReason::no_memory));
    EXPECT_FALSE(ledger.green());
    EXPECT_THAT(ledger.text(), HasSubstr("no_memory: 2, for example "));
    EXPECT_THAT(
        ledger.text(),
        HasSubstr("RED: 2 were not run, the budget is 1; if that is as it should be: --not-run-budget 2\n"));
    // With a failure beside them no budget makes it green.
    ledger.add(with(Outcome::failed));
    EXPECT_THAT(ledger.text(), HasSubstr("RED: 2 were not run, the budget is 1\n"));
    Ledger unexplained({.not_run_budget = 1});
    unexplained.add(with(Outcome::passed));
    unexplained.add(with(Outcome::not_run));
    EXPECT_FALSE(unexplained.green());
}

TEST(Ledger, WhatWasNotRunIsExplainedByAnExample) {
    CaseRunOptions slow;
    slow.work_limit = 1000.0;
    Ledger ledger;
    ledger.add(with(Outcome::passed));
    ledger.add(only(run_case(small_case(), FittingHostKernel(), slow)));
    ledger.add(only(run_case(small_case(), FittingHostKernel(), slow)));
    EXPECT_THAT(ledger.text(),
                HasSubstr("not run because of too_much_work: 2, for example test/small@1: it needs "));
    EXPECT_THAT(ledger.text(), HasSubstr("GFLOP, this target takes on at most 1e-06\n"));
    EXPECT_THAT(ledger.text(), HasSubstr("--not-run-budget 2\n"));
    Ledger allowed({.not_run_budget = 2});
    allowed.add(with(Outcome::passed));
    allowed.add(only(run_case(small_case(), FittingHostKernel(), slow)));
    EXPECT_TRUE(allowed.green());
}

TEST(Ledger, CountsDistinctKernels) {
    Ledger ledger;
    for (const char* kernel : {"a", "b", "a", ""}) ledger.add(with(Outcome::passed, kernel));
    EXPECT_EQ(ledger.distinct_kernels(), 2);
}

TEST(ResultJson, RoundTrips) {
    CaseResult result = run_spoiled(small_case(), [](const FwdArgs& a) {
        static_cast<float*>(a.lse.data)[a.lse.offset(0, 0, 0, 0)] = std::numeric_limits<float>::infinity();
    });
    result.labels = {"mask", "lse"};
    result.family = ApiFamily::bwd;
    result.tier = Tier::nightly;
    result.tiles = {{KernelFamily::bwd_dq_dk_dv, 64, 128}};
    result.message += " \"quoted\" <&> \n";
    const auto again = unpack(pack({result}));
    ASSERT_EQ(again.size(), 1U);
    EXPECT_EQ(pack(again), pack({result}));
    EXPECT_EQ(again.front().message, result.message);
    EXPECT_EQ(again.front().family, ApiFamily::bwd);
    EXPECT_EQ(again.front().tier, Tier::nightly);
    EXPECT_EQ(again.front().tiles.front().family, KernelFamily::bwd_dq_dk_dv);
    ASSERT_FALSE(again.front().worst.empty());
    EXPECT_EQ(again.front().worst.front().got, std::numeric_limits<double>::infinity());
}

TEST(ResultJson, RefusesWhatItDidNotWrite) {
    EXPECT_THROW(unpack("[{}]"), InputError);
    EXPECT_THROW(unpack("[{\"name\": 1}]"), InputError);
    EXPECT_THROW(unpack("["), InputError);
}

/// A kernel may have written over the memory from which its worker answers.
TEST(Answered, AnAnswerThatCannotBeReadIsACrashOfItsCase) {
    const Case c = small_case();
    for (const char* answer : {"[", "{}", "[{\"name\": 1}]"}) {
        const auto results = answered(c, {}, {TaskEnd::Kind::done, answer});
        ASSERT_EQ(results.size(), 1U) << answer;
        EXPECT_EQ(results.front().outcome, Outcome::crashed);
        EXPECT_EQ(results.front().name, c.id);
        EXPECT_FALSE(results.front().message.empty());
        EXPECT_THAT(results.front().reproduce, HasSubstr(c.id));
    }
}

TEST(Glob, Matches) {
    EXPECT_TRUE(catalog::glob_match("*", ""));
    EXPECT_TRUE(catalog::glob_match("a*c?", "abbcd"));
    EXPECT_FALSE(catalog::glob_match("a*c?", "abbc"));
    EXPECT_FALSE(catalog::glob_match("", "a"));
}

} // namespace
} // namespace fmha::harness::test
