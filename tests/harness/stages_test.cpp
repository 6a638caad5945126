// Cases of several stages, with a toy family of two: the first halves x, the second adds 1 to the halves. Candidates vary one
// stage at a time, and every byte that a stage had no business to write is laid at that stage's door.

#include "dispatcher/types/error.hpp"
#include "harness/data/geometry.hpp"
#include "harness/families/family.hpp"
#include "harness/run/candidate.hpp"
#include "harness/run/case_runner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <optional>

namespace fmha::harness {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr KernelFamily halve = KernelFamily::fwd_splitkv, increase = KernelFamily::fwd_splitkv_combine;
constexpr std::int64_t numbers = 5;

const float* input(const SplitKvArgs& args) {
    return static_cast<const float*>(args.q.data);
}
float* halves(const SplitKvArgs& args) {
    return static_cast<float*>(args.partials.o_acc.data);
}
float* sums(const SplitKvArgs& args) {
    return static_cast<float*>(args.o.data);
}

class ToyExpectation final : public CaseExpectation {
  public:
    /// `doubted`: the stage whose numbers cannot be believed; another one than the two: the oracles of the whole are apart.
    ToyExpectation(const SplitKvArgs& args, std::optional<KernelFamily> doubted)
        : args_(args), doubted_(doubted) {}
    double oracle_disagreement() override {
        return doubted_ && *doubted_ != halve && *doubted_ != increase ? 3.0 : 0.0;
    }
    StageVerdict judge(KernelFamily stage, const Outputs& outputs, const Numerics&, InputOrigin) override {
        const bool first = stage == halve;
        const std::string name = first ? "half" : "sum";
        ExactGate gate("exact", name);
        StageVerdict verdict;
        // The second stage is judged on the first one's stored results.
        for (std::int64_t c = 0; c < numbers; ++c) {
            const double got = outputs.at(name).value(0, c),
                         expected = first ? input(args_)[c] / 2 : halves(args_)[c] + 1;
            verdict.judgement.worst.push_back({name, 0, 0, 0, c, got, expected, 1.0});
            if (got != expected) gate.fail("column " + std::to_string(c) + " is wrong");
        }
        verdict.rows = 1;
        verdict.judgement.elements = numbers;
        verdict.judgement.gates.push_back(gate.verdict());
        if (stage == doubted_) verdict.mistrust = "its oracles are apart";
        return verdict;
    }

  private:
    SplitKvArgs args_;
    std::optional<KernelFamily> doubted_;
};

TensorSpec toy_tensor(std::string name, Flow flow) {
    TensorSpec spec;
    spec.name = std::move(name);
    spec.flow = flow;
    spec.layout = array_layout(ElementType::fp32, numbers);
    spec.logical = [](const RowVisit& visit) { visit({0, 0, 0, numbers}); };
    return spec;
}

std::vector<TensorSpec> toy_tensors() {
    std::vector<TensorSpec> specs{toy_tensor("x", Flow::in), toy_tensor("half", Flow::out),
                                  toy_tensor("sum", Flow::out), toy_tensor("workspace", Flow::scratch)};
    specs[0].fill = [](GuardedTensor& tensor) {
        for (std::int64_t c = 0; c < numbers; ++c)
            tensor.set_code(0, 0, 0, c, std::bit_cast<std::uint32_t>(static_cast<float>(c + 3)));
    };
    return specs;
}

class ToyData final : public CaseData {
  public:
    ToyData(bool promises, std::optional<KernelFamily> doubted)
        : promises_(promises), doubted_(doubted), set_(toy_tensors()) {
        set_.refill(Poison::nan);
    }
    TensorSet& tensors() override { return set_; }
    /// Room for five numbers a kernel.
    void prepare(std::span<const KernelConfig> kernels) override {
        set_.lay_out("workspace",
                     array_layout(ElementType::fp32, static_cast<std::int64_t>(kernels.size()) * numbers));
    }
    Invocation invocation() const override { return args(); }
    Outputs outputs(KernelFamily stage) const override {
        const auto rows =
            std::make_shared<const OutputRows>(Axis::query, std::vector{reference::RowId{0, 0, 0}});
        const std::string name = stage == halve ? "half" : "sum";
        Outputs outputs;
        outputs.add(name, ElementType::fp32, rows, Axis::v_channel).append_row(numbers, [&](std::int64_t c) {
            return set_.tensor(name).code(0, 0, 0, c);
        });
        return outputs;
    }
    bool writes(KernelFamily stage, std::string_view name) const override {
        return name == "workspace" || name == (stage == halve ? "half" : "sum");
    }
    bool repeats(KernelFamily, std::string_view name) const override { return promises_ || name != "sum"; }
    std::unique_ptr<CaseExpectation> expectation(int) const override {
        return std::make_unique<ToyExpectation>(args(), doubted_);
    }
    std::size_t write_reference(const std::filesystem::path&, int) const override { return 0; }

  private:
    SplitKvArgs args() const {
        SplitKvArgs args;
        args.q = set_.tensor("x").view();
        args.partials.o_acc = set_.tensor("half").view();
        args.o = set_.tensor("sum").view();
        args.bias = set_.tensor("workspace").view();
        return args;
    }
    bool promises_;
    std::optional<KernelFamily> doubted_;
    TensorSet set_;
};

class ToyFamily final : public Family {
  public:
    /// `promises`: two runs of the second stage give the same bits.
    explicit ToyFamily(bool promises = true, std::optional<KernelFamily> doubted = {})
        : promises_(promises), doubted_(doubted) {}
    std::vector<KernelFamily> stages(const Case&) const override { return {halve, increase}; }
    std::unique_ptr<CaseData> allocate(const Case&, Fp8Flavour) const override {
        return std::make_unique<ToyData>(promises_, doubted_);
    }
    CaseBytes bytes(const Case&, Fp8Flavour, int) const override { return {}; }
    double flops(const Case&) const override { return 0.0; }

  private:
    bool promises_;
    std::optional<KernelFamily> doubted_;
};

using Work = std::function<void(const SplitKvArgs&)>;

class ToyKernel final : public KernelInstance {
  public:
    ToyKernel(const Problem& problem, Work work) : work_(std::move(work)) {
        config_.signature = problem.signature;
    }
    const KernelConfig& config() const override { return config_; }
    std::string name() const override { return "toy"; }
    void launch(const Invocation& invocation, Stream) const override {
        work_(std::get<SplitKvArgs>(invocation));
    }

  private:
    KernelConfig config_;
    Work work_;
};

void halve_all(const SplitKvArgs& args) {
    for (std::int64_t c = 0; c < numbers; ++c) halves(args)[c] = input(args)[c] / 2;
}
void increase_all(const SplitKvArgs& args) {
    for (std::int64_t c = 0; c < numbers; ++c) sums(args)[c] = halves(args)[c] + 1;
}

/// Two kernels a stage. `after_halving` and `after_increasing` do something more in the first of them.
class ToySource final : public KernelSource {
  public:
    explicit ToySource(Work after_halving = {}, Work after_increasing = {})
        : after_{std::move(after_halving), std::move(after_increasing)} {}
    StageKernel planned(const Problem& problem, const KernelConfig* main) const override {
        return accepting(problem, main).front();
    }
    std::vector<StageKernel> accepting(const Problem& problem, const KernelConfig* main) const override {
        const bool first = problem.signature.family == halve;
        // Only the second stage has a main kernel to follow.
        EXPECT_EQ(main == nullptr, first);
        const Work work = first ? halve_all : increase_all;
        const Work altered = [work, more = after_[first ? 0 : 1]](const SplitKvArgs& args) {
            work(args);
            if (more) more(args);
        };
        return {kernel(first ? "halve" : "increase", problem, altered),
                kernel(first ? "halve2" : "increase2", problem, work)};
    }

  private:
    static StageKernel kernel(std::string name, const Problem& problem, const Work& work) {
        return {std::move(name), std::make_shared<ToyKernel>(problem, work), Numerics{}};
    }
    std::array<Work, 2> after_;
};

Case toy_case() {
    Case c;
    c.id = "toy";
    c.family = ApiFamily::fwd_splitkv;
    c.batch = c.nhead_q = c.nhead_k = 1;
    return c;
}

std::vector<CaseResult> run_toy(const KernelSource& source, const CaseRunOptions& options = {}) {
    return run_case(ToyFamily(), toy_case(), source, options);
}

CaseResult planned_toy(const KernelSource& source) {
    const auto results = run_toy(source);
    EXPECT_EQ(results.size(), 1U);
    return results.front();
}

TEST(Stages, RunOneAfterAnotherAndAreJudgedEach) {
    const CaseResult result = planned_toy(ToySource());
    EXPECT_EQ(result.outcome, Outcome::passed) << result.message;
    EXPECT_EQ(result.kernel, "halve + increase");
    EXPECT_EQ(result.rows, 2);
    std::vector<std::string> judged;
    for (const GateVerdict& gate : result.gates)
        if (gate.gate == "exact") judged.push_back(gate.tensor);
    EXPECT_THAT(judged, ElementsAre("half", "sum"));
}

TEST(Stages, TheWorstElementsAreThoseOfAnyStage) {
    const auto spoil = [](const SplitKvArgs& args) { sums(args)[3] += 1; };
    const CaseResult result = planned_toy(ToySource({}, spoil));
    ASSERT_FALSE(result.worst.empty());
    EXPECT_EQ(result.worst.front().tensor, "sum");
    EXPECT_EQ(result.worst.front().column, 3);
}

TEST(Stages, TheDoubtAboutAnyStageIsHeard) {
    for (const KernelFamily stage : {halve, increase}) {
        const CaseResult result = run_case(ToyFamily(true, stage), toy_case(), ToySource(), {}).front();
        EXPECT_EQ(result.outcome, Outcome::mistrusted) << to_string(stage);
        EXPECT_EQ(result.message, "its oracles are apart");
    }
    const CaseResult whole =
        run_case(ToyFamily(true, KernelFamily::fwd), toy_case(), ToySource(), {}).front();
    EXPECT_EQ(whole.outcome, Outcome::mistrusted);
    EXPECT_EQ(whole.message, "the two oracles are 3 times their bound apart");
}

TEST(Stages, AllKernelsVaryOneStageAtATime) {
    CaseRunOptions options;
    options.all_kernels = true;
    const auto names = [&] {
        std::vector<std::string> kernels;
        for (const auto& result : run_toy(ToySource(), options)) kernels.push_back(result.kernel);
        return kernels;
    };
    EXPECT_THAT(names(), ElementsAre("halve + increase", "halve2 + increase", "halve + increase2"));
    options.kernel_filter = "increase*";
    EXPECT_THAT(names(), ElementsAre("halve + increase", "halve + increase2"));
    options.kernel_filter = "halve2";
    EXPECT_THAT(names(), ElementsAre("halve2 + increase"));
}

std::string complaint(const KernelSource& source) {
    const CaseResult result = planned_toy(source);
    EXPECT_EQ(result.outcome, Outcome::failed);
    return result.message;
}

TEST(Stages, AStageThatWritesAnotherOnesOutputIsNamed) {
    EXPECT_THAT(
        complaint(ToySource([](const SplitKvArgs& args) { sums(args)[0] = 0; })),
        HasSubstr("fwd_splitkv: written outside the logical outputs: an input, or an output of another "
                  "stage, was written"));
    // The second stage is judged on the halves that it spoiled, which another gate notices first.
    const CaseResult result =
        planned_toy(ToySource({}, [](const SplitKvArgs& args) { halves(args)[numbers - 1] = 0; }));
    const auto stray = std::ranges::find(result.gates, "G5.5", &GateVerdict::gate);
    ASSERT_NE(stray, result.gates.end());
    EXPECT_THAT(stray->detail, HasSubstr("fwd_splitkv_combine: written outside"));
}

TEST(Stages, AStrayWriteIsLaidAtItsStage) {
    EXPECT_THAT(complaint(ToySource([](const SplitKvArgs& args) { halves(args)[numbers] = 0; })),
                HasSubstr("fwd_splitkv: written outside the logical outputs: half: element 5"));
    EXPECT_THAT(complaint(ToySource({}, [](const SplitKvArgs& args) { sums(args)[-1] = 0; })),
                HasSubstr("fwd_splitkv_combine: written outside the logical outputs: sum"));
}

TEST(Stages, TheWorkspaceMayBeWrittenAndNotItsGuards) {
    const auto write = [](std::int64_t at) {
        return [at](const SplitKvArgs& args) { static_cast<float*>(args.bias.data)[at] = 1.0F; };
    };
    // It was laid out for the two kernels that run.
    EXPECT_EQ(planned_toy(ToySource(write(0), write(2 * numbers - 1))).outcome, Outcome::passed);
    EXPECT_THAT(complaint(ToySource(write(2 * numbers))), HasSubstr("workspace: element 10 (guard after)"));
}

TEST(Stages, OutputsThatPromiseNoBitsMayDifferBetweenRuns) {
    const auto runs = [](bool promises) {
        const auto more = [run = std::make_shared<int>(0)](const SplitKvArgs& args) {
            sums(args)[0] += static_cast<float>((*run)++);
        };
        return run_case(ToyFamily(promises), toy_case(), ToySource({}, more), {}).front();
    };
    EXPECT_EQ(runs(false).outcome, Outcome::passed);
    EXPECT_EQ(runs(true).outcome, Outcome::failed);
    EXPECT_THAT(runs(true).message, HasSubstr("two identical runs differ: fwd_splitkv_combine: sum"));
}

TEST(Stages, AWrongStageIsTheOneThatFails) {
    // The second stage adds 1 to the contents there, so it is right.
    EXPECT_THAT(complaint(ToySource([](const SplitKvArgs& args) { halves(args)[2] += 1; })),
                HasSubstr("exact half: column 2 is wrong"));
    EXPECT_THAT(complaint(ToySource({}, [](const SplitKvArgs& args) { sums(args)[3] += 1; })),
                HasSubstr("exact sum: column 3 is wrong"));
}

TEST(Stages, MemoryThatNoStageWroteShowsInTheResult) {
    EXPECT_THAT(complaint(ToySource([](const SplitKvArgs& args) {
                    if (static_cast<const float*>(args.bias.data)[0] > 1.0F) halves(args)[0] += 1;
                })),
                HasSubstr("fwd_splitkv: half"));
}

} // namespace
} // namespace fmha::harness
