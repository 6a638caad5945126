// Every outcome is produced once, the ledger adds up, and green has to be earned.

#include "dispatcher/types/error.hpp"
#include "harness/results/ledger.hpp"
#include "harness/results/result_json.hpp"
#include "harness/run/worker_pool.hpp"
#include "kernels/catalog/glob.hpp"
#include "tests/harness/gate_support.hpp"

#include <gmock/gmock.h>

#include <csignal>
#include <limits>
#include <set>
#include <thread>

namespace fmha::harness::test {
namespace {

using testing::HasSubstr;

CaseResult only(std::vector<CaseResult> results) {
    EXPECT_EQ(results.size(), 1U);
    return results.front();
}

TEST(Outcomes, PassedAndItsKernel) {
    const CaseResult result = only(run_fwd_case(small_case(), FittingHostKernel(), {}));
    EXPECT_EQ(result.outcome, Outcome::passed) << result.message;
    EXPECT_EQ(result.kernel, "fitting");
    EXPECT_EQ(result.reproduce, "fmha verify test/small@1 --arch gfx950");
}

FwdCase invalid_case() {
    FwdCase c = small_case();
    c.nhead_q = 3;
    c.nhead_k = 2;
    return c;
}

TEST(Outcomes, RefusedAsPredicted) {
    FwdCase c = invalid_case();
    c.expect = Expectation::invalid_problem;
    c.expect_rule = "H-1";
    EXPECT_EQ(only(run_fwd_case(c, FittingHostKernel(), {})).outcome, Outcome::refused_as_predicted);
}

TEST(Outcomes, RefusedForAnotherReason) {
    FwdCase c = invalid_case();
    c.expect = Expectation::invalid_problem;
    c.expect_rule = "N-3";
    const CaseResult result = only(run_fwd_case(c, FittingHostKernel(), {}));
    EXPECT_EQ(result.outcome, Outcome::refused_unexpectedly);
    EXPECT_THAT(result.message, HasSubstr("refused, but not for N-3: H-1"));
}

TEST(Outcomes, RefusedUnexpectedly) {
    EXPECT_EQ(only(run_fwd_case(invalid_case(), FittingHostKernel(), {})).outcome,
              Outcome::refused_unexpectedly);
    EXPECT_EQ(only(run_fwd_case(small_case(), NoKernels(), {})).outcome, Outcome::refused_unexpectedly);
}

TEST(Outcomes, NoKernelAsPredicted) {
    FwdCase c = small_case();
    c.expect = Expectation::no_kernel;
    EXPECT_EQ(only(run_fwd_case(c, NoKernels(), {})).outcome, Outcome::refused_as_predicted);
}

class WithoutType final : public KernelSource {
    Candidate planned(const Problem& problem) const override { return NoKernels().planned(problem); }
    std::vector<Candidate> accepting(const Problem& problem) const override { return {planned(problem)}; }
    bool has_type(DataType type) const override { return type != DataType::fp8; }
};

TEST(Outcomes, ATypeThatTheHardwareLacksIsPredicted) {
    FwdCase c = small_case();
    EXPECT_EQ(only(run_fwd_case(c, WithoutType(), {})).outcome, Outcome::refused_unexpectedly);
    c.data_type = DataType::fp8;
    EXPECT_EQ(only(run_fwd_case(c, WithoutType(), {})).outcome, Outcome::refused_as_predicted);
}

TEST(Outcomes, AcceptingWhatWasToBeRefusedFails) {
    FwdCase c = small_case();
    c.expect = Expectation::no_kernel;
    EXPECT_EQ(only(run_fwd_case(c, FittingHostKernel(), {})).outcome, Outcome::failed);
    c.expect = Expectation::invalid_problem;
    c.expect_rule = "H-1";
    EXPECT_EQ(only(run_fwd_case(c, FittingHostKernel(), {})).outcome, Outcome::failed);
}

TEST(Outcomes, AnotherKernelThanExpectedFails) {
    FwdCase c = small_case();
    c.expect_kernel = "*qr_async*";
    const CaseResult result = only(run_fwd_case(c, FittingHostKernel(), {}));
    EXPECT_EQ(result.outcome, Outcome::failed);
    EXPECT_EQ(result.message, "planned fitting, expected *qr_async*");
}

class CannotExecute final : public KernelSource {
    Candidate planned(const Problem&) const override {
        throw UnsupportedInvocation("the target has no such unit");
    }
    std::vector<Candidate> accepting(const Problem& problem) const override { return {planned(problem)}; }
};

TEST(Outcomes, NotRunForAReason) {
    const CaseResult target = only(run_fwd_case(small_case(), CannotExecute(), {}));
    EXPECT_EQ(target.outcome, Outcome::not_run);
    EXPECT_EQ(target.not_run_reason, NotRunReason::target_cannot);
    FwdRunOptions little;
    little.memory_limit = 1000;
    const CaseResult memory = only(run_fwd_case(small_case(), FittingHostKernel(), little));
    EXPECT_EQ(memory.outcome, Outcome::not_run);
    EXPECT_EQ(memory.not_run_reason, NotRunReason::no_memory);
}

TEST(Outcomes, ALaunchThatRefusesFails) {
    const CaseResult result =
        run_spoiled(small_case(), [](const FwdArgs&) { throw UnsupportedInvocation("wrong alignment"); });
    EXPECT_EQ(result.outcome, Outcome::failed);
    EXPECT_THAT(result.message, HasSubstr("wrong alignment"));
}

/// What a pool of two processes makes of `task`.
std::vector<TaskEnd> ends_of(std::size_t count, const std::function<std::string(std::size_t)>& task,
                             std::chrono::milliseconds timeout = std::chrono::milliseconds(0)) {
    std::vector<TaskEnd> ends(count);
    run_isolated(count, {2, timeout}, task, [&](std::size_t i, const TaskEnd& end) {
        ends[i] = end;
        return true;
    });
    return ends;
}

TEST(Isolation, ReturnsEveryAnswer) {
    const auto ends = ends_of(20, [](std::size_t i) { return std::string(i * 10'000, 'x'); });
    for (std::size_t i = 0; i < ends.size(); ++i) EXPECT_EQ(ends[i].answer.size(), i * 10'000);
}

TEST(Isolation, ACrashCostsItself) {
    const auto ends = ends_of(6, [](std::size_t i) {
        if (i % 3 == 1) std::raise(SIGKILL);
        return std::to_string(i);
    });
    for (std::size_t i = 0; i < ends.size(); ++i) {
        EXPECT_EQ(ends[i].kind, i % 3 == 1 ? TaskEnd::Kind::crashed : TaskEnd::Kind::done);
        if (i % 3 != 1) {
            EXPECT_EQ(ends[i].answer, std::to_string(i));
        }
    }
    EXPECT_THAT(ends[1].answer, HasSubstr("signal 9"));
    const CaseResult result = lost_result(small_case(), {}, ends[1]);
    EXPECT_EQ(result.outcome, Outcome::crashed);
    EXPECT_EQ(result.name, "test/small@1");
}

TEST(Isolation, AnExceptionCostsItself) {
    // A worker that unwound its copy of this stack would end its sibling.
    const auto ends = ends_of(6, [&](std::size_t i) -> std::string {
        if (i % 3 == 1) throw std::runtime_error("no luck");
        if (i % 3 == 2) throw 7;
        // Is still at work when the sibling throws.
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        return std::to_string(i);
    });
    for (std::size_t i = 0; i < ends.size(); ++i) {
        EXPECT_EQ(ends[i].kind, i % 3 == 0 ? TaskEnd::Kind::done : TaskEnd::Kind::crashed);
        EXPECT_FALSE(ends[i].killed_from_outside);
    }
    EXPECT_EQ(ends[1].answer, "ended by an exception: no luck");
    EXPECT_EQ(ends[2].answer, "ended by an exception of an unknown type");
    EXPECT_EQ(ends[3].answer, "3");
}

TEST(Isolation, ASpentProcessTakesNoOtherTask) {
    std::vector<std::string> answers(4);
    int tasks_here = 0; // of this process and, after the fork, of one worker
    run_isolated(
        4, {.jobs = 1, .spent = [&] { return tasks_here == 2; }},
        [&](std::size_t) { return std::to_string(++tasks_here); },
        [&](std::size_t i, const TaskEnd& end) {
            EXPECT_EQ(end.kind, TaskEnd::Kind::done);
            answers[i] = end.answer;
            return true;
        });
    EXPECT_THAT(answers, testing::ElementsAre("1", "2", "1", "2"));
}

TEST(Isolation, AHangCostsItself) {
    const auto ends = ends_of(
        3,
        [](std::size_t i) {
            if (i == 0) std::this_thread::sleep_for(std::chrono::hours(1));
            return std::string("done");
        },
        std::chrono::milliseconds(300));
    EXPECT_EQ(ends[0].kind, TaskEnd::Kind::timed_out);
    EXPECT_EQ(ends[1].answer, "done");
    EXPECT_EQ(ends[2].answer, "done");
    EXPECT_EQ(lost_result(small_case(), {}, ends[0]).outcome, Outcome::timed_out);
}

TEST(Isolation, AStrayAccessFarAwayCostsItself) {
    const auto ends = ends_of(2, [](std::size_t i) {
        const FwdCase c = small_case();
        if (i == 1) return pack({run_right(c)});
        return pack({run_spoiled(
            c, [](const FwdArgs& a) { static_cast<volatile char*>(a.o.data)[std::int64_t{1} << 32U] = 1; })});
    });
    EXPECT_EQ(ends[0].kind, TaskEnd::Kind::crashed);
    ASSERT_EQ(ends[1].kind, TaskEnd::Kind::done);
    EXPECT_EQ(unpack(ends[1].answer).front().outcome, Outcome::passed);
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
    EXPECT_EQ(ledger.asked(), 8);
    EXPECT_EQ(sum, ledger.asked());
    EXPECT_EQ(ledger.executed(), 7);
}

TEST(Ledger, OneOfTheseIsRed) {
    for (const Outcome bad : {Outcome::failed, Outcome::mistrusted, Outcome::refused_unexpectedly,
                              Outcome::crashed, Outcome::timed_out}) {
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
    Ledger skipped(10);
    skipped.add(with(Outcome::not_run, "", NotRunReason::no_memory));
    EXPECT_FALSE(skipped.green());
}

TEST(Ledger, NotRunHasABudgetAndAReason) {
    Ledger ledger(1);
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
    Ledger unexplained(1);
    unexplained.add(with(Outcome::passed));
    unexplained.add(with(Outcome::not_run));
    EXPECT_FALSE(unexplained.green());
}

TEST(Ledger, WhatWasNotRunIsExplainedByAnExample) {
    FwdRunOptions slow;
    slow.work_limit = 1000.0;
    Ledger ledger;
    ledger.add(with(Outcome::passed));
    ledger.add(only(run_fwd_case(small_case(), FittingHostKernel(), slow)));
    ledger.add(only(run_fwd_case(small_case(), FittingHostKernel(), slow)));
    EXPECT_THAT(ledger.text(),
                HasSubstr("not run because of too_much_work: 2, for example test/small@1: it needs "));
    EXPECT_THAT(ledger.text(), HasSubstr("GFLOP, this target takes on at most 1e-06\n"));
    EXPECT_THAT(ledger.text(), HasSubstr("--not-run-budget 2\n"));
    Ledger allowed(2);
    allowed.add(with(Outcome::passed));
    allowed.add(only(run_fwd_case(small_case(), FittingHostKernel(), slow)));
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
    result.message += " \"quoted\" <&> \n";
    const auto again = unpack(pack({result}));
    ASSERT_EQ(again.size(), 1U);
    EXPECT_EQ(pack(again), pack({result}));
    EXPECT_EQ(again.front().message, result.message);
    ASSERT_FALSE(again.front().worst.empty());
    EXPECT_EQ(again.front().worst.front().got, std::numeric_limits<double>::infinity());
}

TEST(ResultJson, RefusesWhatItDidNotWrite) {
    EXPECT_THROW(unpack("[{}]"), InputError);
    EXPECT_THROW(unpack("[{\"name\": 1}]"), InputError);
    EXPECT_THROW(unpack("["), InputError);
}

TEST(Glob, Matches) {
    EXPECT_TRUE(catalog::glob_match("*", ""));
    EXPECT_TRUE(catalog::glob_match("a*c?", "abbcd"));
    EXPECT_FALSE(catalog::glob_match("a*c?", "abbc"));
    EXPECT_FALSE(catalog::glob_match("", "a"));
}

} // namespace
} // namespace fmha::harness::test
