// A family that has files of its own and a row in each table of families (places.txt) goes through the real rooms: case language, planning, host
// target, verdicts. Everything here is compiled with those lines in place.

#include "dispatcher/dispatcher.hpp"
#include "dispatcher/explain/explain.hpp"
#include "dispatcher/invocation.hpp"
#include "dispatcher/types/error.hpp"
#include "harness/cases/case_problem.hpp"
#include "harness/cases/load.hpp"
#include "harness/families/family.hpp"
#include "harness/run/catalogue_kernels.hpp"
#include "harness/run/run_cases.hpp"
#include "kernels/targets/hip/cannot_execute.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "kernels/targets/host/numerics.hpp"

#include <gmock/gmock.h>

#include <functional>

namespace fmha::harness {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

KernelConfig toy_kernel(DataType type, Mode mode, std::int16_t rows) {
    KernelConfig config;
    config.arch = "gfx950";
    config.signature.family = KernelFamily::toy;
    config.signature.data_type = type;
    config.signature.mode = mode;
    config.signature.hdim_q = config.signature.hdim_v = 128;
    config.algorithm.tile.m0 = rows;
    config.algorithm.pad = {.s = true, .sk = true, .d = 1, .dv = 1};
    config.algorithm.selection_rank = rows;
    return config;
}

std::vector<KernelConfig> toy_kernels() {
    std::vector<KernelConfig> kernels;
    for (const DataType type : {DataType::fp16, DataType::bf16, DataType::fp32})
        for (const Mode mode : {Mode::batch, Mode::group})
            for (const std::int16_t rows : {std::int16_t{16}, std::int16_t{64}})
                kernels.push_back(toy_kernel(type, mode, rows));
    return kernels;
}

std::vector<Case> toy_cases() {
    return load_cases({}, {.root = FMHA_TOY_CASES});
}

std::vector<CaseResult> run(const std::vector<Case>& cases, const KernelSource& source,
                            const RunOptions& options) {
    const InterruptWatch interrupt;
    return run_cases(cases, source, *make_target("host", {}), options, interrupt);
}

std::unique_ptr<KernelSource> planned_kernels() {
    return listed_kernels(make_target("host", {}), toy_kernels(),
                          [](const KernelConfig& config) { return identifier(config); });
}

TEST(ToyFamily, ItsCasesPass) {
    const std::vector<Case> cases = toy_cases();
    ASSERT_GT(cases.size(), 70U);
    for (const bool all : {false, true}) {
        RunOptions options{.jobs = 0};
        options.of_case.all_kernels = all;
        const auto results = run(cases, *planned_kernels(), options);
        EXPECT_EQ(results.size(), all ? 2 * cases.size() : cases.size());
        for (const CaseResult& result : results)
            EXPECT_EQ(result.outcome, Outcome::passed) << result.name << ": " << result.message;
    }
}

TEST(ToyFamily, ANameOfItsCasesRunsThemAgain) {
    const Case c = load_case("toy/plain[seqlen_q=65,heads=6:2]@2", FMHA_TOY_CASES);
    EXPECT_EQ(c.family, ApiFamily::toy);
    EXPECT_EQ(c.nhead_k, 2);
    EXPECT_EQ(load_case(c.id, FMHA_TOY_CASES), c);
    EXPECT_THAT([] { load_case("toy/plain[num_splits=2]@1", FMHA_TOY_CASES); },
                testing::ThrowsMessage<InputError>(HasSubstr("num_splits is not a field of family toy")));
}

TEST(ToyFamily, IsPlannedAndExplained) {
    Registry registry("toys", [](const KernelConfig& config) { return identifier(config); });
    registry.add(std::span<const KernelConfig>(toy_kernels()));
    const Dispatcher dispatcher(registry, {});
    Problem problem = to_problem(load_case("toy/plain@1", FMHA_TOY_CASES), "gfx950");
    const ExecutionPlan plan = dispatcher.plan(problem);
    ASSERT_TRUE(plan.valid());
    ASSERT_EQ(plan.stages().size(), 1U);
    EXPECT_EQ(plan.stages()[0].kernel->config, toy_kernel(DataType::fp16, Mode::batch, 64));
    problem.signature.hdim_q = problem.signature.hdim_v = 256;
    EXPECT_THAT(dispatcher.plan(problem).missing(), ElementsAre(KernelFamily::toy));
    EXPECT_THAT(to_text(explain(dispatcher, problem)), HasSubstr("hdim_q is 256"));
}

TEST(ToyFamily, ItsArgumentsPoseAProblem) {
    ToyArgs args;
    args.shape = {
        .batch = 1, .nhead_q = 2, .nhead_k = 2, .seqlen_q = 3, .seqlen_k = 3, .hdim_q = 64, .hdim_v = 64};
    const Problem problem = problem_of(Signature{.data_type = DataType::bf16}, args, "gfx950");
    EXPECT_EQ(problem.api_family, ApiFamily::toy);
    EXPECT_EQ(problem.signature.family, KernelFamily::toy);
    EXPECT_EQ(problem.seqlen_q, 3);
}

TEST(ToyFamily, ALaunchIsCheckedLikeAnyOther) {
    const auto kernel = host_target::make_instance(toy_kernel(DataType::fp16, Mode::batch, 64));
    ToyArgs args;
    args.shape = {
        .batch = 1, .nhead_q = 1, .nhead_k = 1, .seqlen_q = 1, .seqlen_k = 1, .hdim_q = 64, .hdim_v = 64};
    args.q.type = args.o.type = ElementType::fp16;
    EXPECT_THAT([&] { kernel->launch(args, {}); },
                testing::ThrowsMessage<InputError>(HasSubstr("q.data is NULL")));
    args.shape.hdim_q = 256;
    EXPECT_THAT([&] { kernel->launch(args, {}); },
                testing::ThrowsMessage<UnsupportedInvocation>(HasSubstr("exceed the kernel's (128, 128)")));
    EXPECT_THAT([&] { kernel->launch(FwdArgs(), {}); },
                testing::ThrowsMessage<ArgumentTypeError>(HasSubstr("takes the arguments of family toy")));
    EXPECT_THAT(hip_target::cannot_execute(kernel->config()),
                testing::Optional(HasSubstr("no plan says how a GPU runs kernels of toy")));
}

/// The planned kernel with something done to its arguments before each launch, and to its results after it.
class AlteredToys final : public KernelSource {
  public:
    using Alter = std::function<void(ToyArgs&)>;
    AlteredToys(Alter before, Alter after)
        : right_(planned_kernels()), before_(std::move(before)), after_(std::move(after)) {}
    StageKernel planned(const Problem& problem, const KernelConfig* main) const override {
        StageKernel kernel = right_->planned(problem, main);
        kernel.instance = std::make_shared<Altered>(kernel.instance, *this);
        return kernel;
    }
    std::vector<StageKernel> accepting(const Problem& problem, const KernelConfig* main) const override {
        return {planned(problem, main)};
    }

  private:
    class Altered final : public KernelInstance {
      public:
        Altered(std::shared_ptr<const KernelInstance> inner, const AlteredToys& by)
            : inner_(std::move(inner)), by_(by) {}
        const KernelConfig& config() const override { return inner_->config(); }
        std::string name() const override { return "altered." + inner_->name(); }
        void launch(const Invocation& invocation, Stream stream) const override {
            ToyArgs args = std::get<ToyArgs>(invocation);
            if (by_.before_) by_.before_(args);
            inner_->launch(args, stream);
            if (by_.after_) by_.after_(args);
        }

      private:
        std::shared_ptr<const KernelInstance> inner_;
        const AlteredToys& by_;
    };

    std::unique_ptr<KernelSource> right_;
    Alter before_, after_;
};

CaseResult red(const AlteredToys& source) {
    const auto results =
        run({load_case("toy/rows[dtype=fp16,mode=batch,seqlen_q=65,hdim=32,heads=4:2]@1", FMHA_TOY_CASES)},
            source, {.jobs = 0});
    return results.at(0);
}

TEST(ToyFamily, AWrongKernelIsRed) {
    const CaseResult group = red(AlteredToys([](ToyArgs& args) { args.shape.nhead_k = 1; }, nullptr));
    EXPECT_EQ(group.outcome, Outcome::failed);
    ASSERT_NE(group.first_failure(), nullptr);
    EXPECT_EQ(group.first_failure()->gate, "G1");
    EXPECT_THAT(group.pattern, HasSubstr("520 of 520 checked rows"));

    const CaseResult short_of_a_row = red(AlteredToys([](ToyArgs& args) { --args.shape.seqlen_q; }, nullptr));
    EXPECT_EQ(short_of_a_row.outcome, Outcome::failed);

    const CaseResult stray = red(AlteredToys(nullptr, [](ToyArgs& args) {
        static_cast<std::uint16_t*>(args.o.data)[args.shape.hdim_q] = 1; // padding of the first row
    }));
    EXPECT_EQ(stray.outcome, Outcome::failed);
    EXPECT_THAT(stray.message, HasSubstr("o: element"));

    const CaseResult spoilt =
        red(AlteredToys(nullptr, [](ToyArgs& args) { static_cast<std::uint16_t*>(args.q.data)[0] ^= 1U; }));
    EXPECT_EQ(spoilt.outcome, Outcome::failed);
}

} // namespace
} // namespace fmha::harness
