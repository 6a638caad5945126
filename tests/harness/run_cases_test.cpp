// A run of several cases gives the same results in this process and in workers, and ends as it was told.

#include "dispatcher/system/parallel.hpp"
#include "dispatcher/system/process.hpp"
#include "dispatcher/types/error.hpp"
#include "harness/cases/case_problem.hpp"
#include "harness/data/fwd_tensors.hpp"
#include "harness/families/few_rows.hpp"
#include "harness/run/catalogue_kernels.hpp"
#include "harness/run/run_cases.hpp"
#include "tests/harness/gate_support.hpp"
#include "tests/harness/run_support.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <new>
#include <stdexcept>
#include <thread>

namespace fmha::harness::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<Case> cases_with(const std::vector<std::int64_t>& lengths) {
    std::vector<Case> cases;
    for (const std::int64_t length : lengths) {
        cases.push_back(small_case());
        cases.back().seqlen_k = {length};
        cases.back().id = "test/small[seqlen_k=" + std::to_string(length) + "]@1";
    }
    return cases;
}

class InProcessAndInWorkers : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Jobs, InProcessAndInWorkers, testing::Values(0, 1, 2));

TEST_P(InProcessAndInWorkers, ACaseThatCannotBeLaidOutIsBadInputBeforeAnythingRuns) {
    auto cases = cases_with({20, 30});
    cases[1].batch = 2;
    cases[1].wide_tensor = "q";
    cases[1].wide_batch_stride = 1;
    bool begun = false;
    RunOptions options{.jobs = GetParam()};
    options.on_case = [&](const std::string&) { begun = true; };
    EXPECT_THAT([&] { run(cases, FittingHostKernel(), options); },
                testing::ThrowsMessage<InputError>(
                    AllOf(HasSubstr("test/small[seqlen_k=30]@1: "), HasSubstr("wide_batch_stride 1"))));
    EXPECT_FALSE(begun);
}

TEST_P(InProcessAndInWorkers, AReasonThatDoesNotExistIsBadInput) {
    auto cases = cases_with({20});
    cases[0].expect = Expectation::no_kernel;
    cases[0].expect_rule = "hdim";
    EXPECT_THAT(
        [&] { run(cases, NoKernels(Reason::hdim_q_too_large), {.jobs = GetParam()}); },
        testing::ThrowsMessage<InputError>(HasSubstr("expect no_kernel:hdim: not a reason; allowed: ")));
}

/// Throws in place of planning a kernel.
template <class Thrown>
class Throwing final : public KernelSource {
  public:
    explicit Throwing(Thrown thrown) : thrown_(std::move(thrown)) {}
    StageKernel planned(const Problem& problem, const KernelConfig* main) const override {
        if (problem.seqlen_k == 30) throw thrown_;
        return FittingHostKernel().planned(problem, main);
    }
    std::vector<StageKernel> accepting(const Problem& problem, const KernelConfig* main) const override {
        return {planned(problem, main)};
    }

  private:
    Thrown thrown_;
};

TEST_P(InProcessAndInWorkers, BadInputOfASourceEndsTheRun) {
    EXPECT_THAT(
        [&] {
            run(cases_with({20, 30}), Throwing(InputError("no such file")), {.jobs = GetParam()});
        },
        testing::ThrowsMessage<InputError>("test/small[seqlen_k=30]@1: no such file"));
}

TEST_P(InProcessAndInWorkers, AnExceptionIsACrashOfItsCase) {
    const auto results =
        run(cases_with({20, 30, 40}), Throwing(std::runtime_error("no luck")), {.jobs = GetParam()});
    EXPECT_THAT(outcomes(results), ElementsAre(Outcome::passed, Outcome::crashed, Outcome::passed));
    EXPECT_THAT(results[1].message, HasSubstr("no luck"));
}

TEST_P(InProcessAndInWorkers, WhatAListenerThrowsIsNoCrashOfTheCase) {
    int told = 0;
    RunOptions options{.jobs = GetParam()};
    options.on_results = [&](const std::string&, std::span<const CaseResult>) {
        if (++told == 1) throw std::runtime_error("of the listener");
    };
    EXPECT_THAT(
        [&] {
            run(cases_with({20, 30}), FittingHostKernel(), options);
        },
        testing::ThrowsMessage<std::runtime_error>("of the listener"));
    EXPECT_EQ(told, 1);
}

TEST_P(InProcessAndInWorkers, WhatFindsNoMemoryIsNotRunAndTriedAgain) {
    const system::TemporaryDirectory folder;
    const auto cases = cases_with({20, 30, 40});
    const SpoiledKernel in_kernel([](const FwdArgs& args) {
        if (args.shape.seqlen_k == 30) throw std::bad_alloc();
    });
    const Throwing in_planning{std::bad_alloc()};
    const std::array<std::pair<const char*, const KernelSource*>, 2> sources{
        {{"kernel", &in_kernel}, {"planning", &in_planning}}};
    for (const auto& [name, source] : sources) {
        for (const bool again : {false, true}) {
            Journal journal(folder.path() / name, {{"run", name}}, "1");
            EXPECT_EQ(journal.finished().size(), again ? 2U : 0U);
            const auto results = run(cases, *source, {.jobs = GetParam()}, &journal);
            EXPECT_THAT(outcomes(results), ElementsAre(Outcome::passed, Outcome::not_run, Outcome::passed));
            EXPECT_EQ(results[1].not_run_reason, NotRunReason::no_memory);
        }
        Journal journal(folder.path() / name, {{"run", name}}, "1");
        EXPECT_THAT(outcomes(run(cases, FittingHostKernel(), {.jobs = GetParam()}, &journal)),
                    ElementsAre(Outcome::passed, Outcome::passed, Outcome::passed));
    }
}

/// Spoils the output of every case with 30 keys.
const SpoiledKernel& wrong_with_30_keys() {
    static const SpoiledKernel kernel([](const FwdArgs& args) {
        if (args.shape.seqlen_k == 30) static_cast<std::uint16_t*>(args.o.data)[0] ^= 0x1000U;
    });
    return kernel;
}

TEST(FailFast, EndsTheRunAtTheFirstRedCase) {
    const auto cases = cases_with({20, 30, 40, 50});
    // Of two workers the other one may have finished another case meanwhile.
    for (const int jobs : {0, 1}) {
        const RunOptions patient{.jobs = jobs};
        EXPECT_THAT(outcomes(run(cases, wrong_with_30_keys(), patient)),
                    ElementsAre(Outcome::passed, Outcome::failed, Outcome::passed, Outcome::passed));

        const RunOptions fast{.jobs = jobs, .fail_fast = true};
        const auto results = run(cases, wrong_with_30_keys(), fast);
        EXPECT_THAT(outcomes(results),
                    ElementsAre(Outcome::passed, Outcome::failed, Outcome::not_run, Outcome::not_run));
        EXPECT_EQ(results[3].not_run_reason, NotRunReason::after_failure);
        Ledger ledger;
        for (const CaseResult& result : results) ledger.add(result);
        EXPECT_THAT(ledger.text(),
                    HasSubstr("RED: ended at the first red case, 2 were not run (--fail-fast)"));
    }
}

TEST_P(InProcessAndInWorkers, FailFastKnowsTheBudgetAndTheFinished) {
    const system::TemporaryDirectory folder;
    auto cases = cases_with({20, 30, 40});
    RunOptions options{.jobs = GetParam(), .fail_fast = true};
    options.of_case.work_limit = 1.0; // nothing is run
    options.rules.not_run_budget = 3;
    for (const CaseResult& result : run(cases, FittingHostKernel(), options))
        EXPECT_EQ(result.not_run_reason, NotRunReason::too_much_work);

    options = {.jobs = GetParam(), .fail_fast = true};
    {
        Journal journal(folder.path() / "journal", {{"run", 1}}, "1");
        run({cases[1]}, wrong_with_30_keys(), options, &journal);
    }
    Journal journal(folder.path() / "journal", {{"run", 1}}, "1");
    EXPECT_THAT(outcomes(run(cases, wrong_with_30_keys(), options, &journal)),
                ElementsAre(Outcome::not_run, Outcome::failed, Outcome::not_run))
        << "a failure in the journal is the first red case";
}

TEST(Jobs, AreOneAHardwareThreadOrOneADeviceAndNoMoreThanCases) {
    EXPECT_EQ(default_jobs("host", 1'000'000), system::hardware_threads());
    EXPECT_EQ(default_jobs("emulated", 1), 1);
    EXPECT_EQ(default_jobs("host", 0), 1);
    EXPECT_EQ(default_jobs("hip", 100), 1);
    EXPECT_THROW(default_jobs("moon", 1), InputError);
}

/// The most threads that this process has while `work` runs, without the thread that counts them.
std::ptrdiff_t most_threads_during(const std::function<void()>& work) {
    std::atomic<bool> done{false};
    std::ptrdiff_t most = 0;
    {
        const std::jthread counter([&] {
            while (!done) {
                const std::filesystem::directory_iterator threads("/proc/self/task");
                most = std::max(most, std::distance(begin(threads), end(threads)));
                std::this_thread::sleep_for(std::chrono::microseconds(50));
            }
        });
        work();
        done = true;
    }
    return most - 1;
}

/// The documents of --arch know one default, whichever processor target runs the kernels.
TEST(Targets, PlanForTheSameArchitectureUnlessToldOtherwise) {
    for (const char* name : {"host", "emulated"}) {
        EXPECT_EQ(make_target(name, {})->arch(), "gfx950") << name;
        EXPECT_EQ(make_target(name, {.arch = "gfx90a", .kernels_dir = {}})->arch(), "gfx90a") << name;
    }
}

TEST(Jobs, ProcessesTimesKernelThreadsFitTheMachine) {
    const int hardware = system::hardware_threads();
    if (hardware < 2) GTEST_SKIP() << "one hardware thread: kernels start no other";
    Case c = small_case();
    c.nhead_q = c.nhead_k = 8;
    for (const char* name : {"host", "emulated"}) {
        FwdTensors tensors(c, fp8_flavour("gfx950"));
        const auto threads_with = [&](int jobs) {
            const auto source =
                house_kernels(make_target(name, {.arch = "gfx950", .kernels_dir = {}, .jobs = jobs}));
            const StageKernel kernel = source->planned(to_problem(c, "gfx950"), nullptr);
            return most_threads_during([&] {
                for (int n = 0; n < 10; ++n) kernel.instance->launch(tensors.args(), {});
            });
        };
        // A process that works alone may use them all; those that fill the machine have one each.
        EXPECT_GT(threads_with(1), 1) << name;
        EXPECT_EQ(threads_with(hardware), 1) << name;
        EXPECT_EQ(threads_with(1'000'000), 1) << name;
    }
}

} // namespace
} // namespace fmha::harness::test
