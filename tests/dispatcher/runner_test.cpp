#include "dispatcher/runner.hpp"

#include "dispatcher/invocation.hpp"
#include "dispatcher/types/error.hpp"
#include "tests/dispatcher/kernels.hpp"
#include "tests/dispatcher/skeleton.hpp"

#include <gmock/gmock.h>

#include <functional>

namespace fmha {
namespace {

using testing::builder_for;
using testing::FakeInstance;
using testing::fwd_kernel;
using ::testing::HasSubstr;
using testing::instance;
using testing::kernel_of;
using testing::skeleton_of;

const Problem forward = builder_for(ApiFamily::fwd).build();

struct Bench {
    Registry registry;
    Dispatcher dispatcher{registry};
    Runner runner{dispatcher};
};

TEST(Runner, LaunchesOnceWithoutAClockByDefault) {
    Bench b;
    const auto kernel = instance(fwd_kernel());
    b.registry.add(kernel);
    const RunResult result = b.runner.run(forward, skeleton_of(forward), {});
    EXPECT_EQ(kernel->launches, 1);
    EXPECT_EQ(result.launches, 1);
    EXPECT_EQ(result.median_ms, 0.0);
}

TEST(Runner, BenchmarkingWarmsUpRepeatsAndPreparesEveryPass) {
    Bench b;
    const auto kernel = instance(fwd_kernel());
    b.registry.add(kernel);
    b.runner.set_benchmarking(true);
    int prepared = 0;
    const auto prepare = [&](const ExecutionPlan&) { ++prepared; };
    EXPECT_EQ(b.runner.run(forward, skeleton_of(forward), {}, prepare).launches, 15);
    EXPECT_EQ(kernel->launches, 15);
    EXPECT_EQ(prepared, 15);
    b.runner.set_timing(0, 3);
    const RunResult result = b.runner.run(forward, skeleton_of(forward), {}, prepare);
    EXPECT_EQ(kernel->launches, 18);
    EXPECT_GE(result.mean_ms, 0.0);
    EXPECT_THROW(b.runner.set_timing(-1, 3), InputError);
    EXPECT_THROW(b.runner.set_timing(1, 0), InputError);
}

/// A kernel of a device whose passes take as long as the clock says.
class DeviceInstance final : public FakeInstance {
  public:
    using FakeInstance::FakeInstance;
    std::unique_ptr<PassClock> clock(Stream stream) const override {
        streams.push_back(stream.handle);
        return std::make_unique<Clock>(*this);
    }
    mutable std::vector<void*> streams;
    mutable std::vector<std::string> log;
    std::vector<double> seconds{3.0, 1.0, 8.0};

  private:
    class Clock final : public PassClock {
      public:
        explicit Clock(const DeviceInstance& owner) : owner_(owner) {}
        void start() override { owner_.log.push_back("start"); }
        void stop() override { owner_.log.push_back(std::to_string(owner_.launches)); }
        std::vector<double> take_seconds() override {
            owner_.log.push_back("take");
            return owner_.seconds;
        }

      private:
        const DeviceInstance& owner_;
    };
};

TEST(Runner, AKernelOfADeviceIsTimedByTheClockOfItsStream) {
    Bench b;
    const auto kernel = std::make_shared<DeviceInstance>(fwd_kernel(), "device");
    b.registry.add(kernel);
    int place = 0;
    EXPECT_EQ(b.runner.run(forward, skeleton_of(forward), {&place}).median_ms, 0.0);
    EXPECT_THAT(kernel->log, ::testing::IsEmpty()) << "a clock without benchmarking";
    b.runner.set_benchmarking(true);
    b.runner.set_timing(2, 3);
    const RunResult result = b.runner.run(forward, skeleton_of(forward), {&place});
    EXPECT_EQ(kernel->streams.back(), &place);
    EXPECT_THAT(kernel->log, ::testing::ElementsAre("start", "4", "start", "5", "start", "6", "take"))
        << "one launch without benchmarking and two to warm up come first";
    EXPECT_EQ(result.median_ms, 3e3);
    EXPECT_EQ(result.mean_ms, 4e3);
    kernel->seconds = {9.0, 1.0, 4.0, 3.0};
    EXPECT_EQ(b.runner.run(forward, skeleton_of(forward), {&place}).median_ms, 3.5e3)
        << "of an even number of passes";
}

TEST(Runner, StagesRunInOrder) {
    Bench b;
    using enum KernelFamily;
    std::vector<std::string> order;
    class Recorder final : public FakeInstance {
      public:
        Recorder(const KernelConfig& config, std::vector<std::string>& log)
            : FakeInstance(config, std::string(to_string(config.signature.family))), log_(log) {}
        void launch(const Invocation&, Stream) const override { log_.push_back(name()); }

      private:
        std::vector<std::string>& log_;
    };
    for (const KernelFamily family : {bwd_convert_dq, bwd_dq_dk_dv, bwd_dot_do_o})
        b.registry.add(std::make_shared<const Recorder>(kernel_of(family), order));
    BwdArgs args;
    args.shape = skeleton_of(forward).shape;
    b.runner.run(builder_for(ApiFamily::bwd).build(), args, {});
    EXPECT_THAT(order, ::testing::ElementsAre("bwd_dot_do_o", "bwd_dq_dk_dv", "bwd_convert_dq"));
}

/// A runner for each API derives the problem, so that traits and arguments are all that a caller states.
TEST(Runner, WrappersPoseTheProblemOfTheirArguments) {
    Bench b;
    using enum KernelFamily;
    std::vector<std::shared_ptr<FakeInstance>> kernels;
    for (const KernelFamily family : {fwd, bwd_dot_do_o, bwd_dq_dk_dv, bwd_convert_dq}) {
        kernels.push_back(instance(kernel_of(family)));
        b.registry.add(kernels.back());
    }
    FwdArgs args = skeleton_of(forward);
    int prepared = 0;
    const RunResult result =
        b.runner.run_fwd(forward.signature, args, "gfx950", {}, [&](const ExecutionPlan&) { ++prepared; });
    EXPECT_EQ(result.plan.problem(), b.dispatcher.resolved(forward));
    EXPECT_EQ(prepared, 1);
    EXPECT_EQ(kernels[0]->launches, 1);
    BwdArgs gradients;
    gradients.shape = args.shape;
    EXPECT_EQ(b.runner.run_bwd({}, gradients, "gfx950", {}).plan.stages().size(), 3U);
    for (const auto& kernel : kernels) EXPECT_EQ(kernel->launches, 1);
    EXPECT_THROW(b.runner.run_fwd(forward.signature, args, "gfx942", {}), NoKernelFound);
    args.shape.nhead_k = 3;
    EXPECT_THROW(b.runner.run_fwd(forward.signature, args, "gfx950", {}), ProblemError);
    EXPECT_THROW(b.runner.run_fwd_pagedkv({}, {}, "gfx950", {}), ProblemError);
    EXPECT_THROW(b.runner.run_fwd_splitkv({}, {}, "gfx950", {}), ProblemError);
    EXPECT_THROW(b.runner.run_fwd_appendkv({}, {}, "gfx950", {}), ProblemError);
    EXPECT_THROW(b.runner.run_batch_prefill({}, {}, "gfx950", {}), ProblemError);
}

TEST(Runner, SaysWhyItCannotRun) {
    Bench b;
    const Problem problem = builder_for(ApiFamily::fwd_splitkv).build();
    EXPECT_THROW(b.runner.run(problem, {}, {}), NoKernelFound);
    b.registry.add(instance(kernel_of(KernelFamily::fwd_splitkv)));
    EXPECT_THROW(b.runner.run(problem, {}, {}), PlanIncomplete);
    b.registry.add(kernel_of(KernelFamily::fwd_splitkv_combine));
    try {
        b.runner.run(problem, {}, {});
        FAIL();
    } catch (const UnsupportedInvocation& error) {
        EXPECT_THAT(error.what(), HasSubstr("registered but not built"));
    }
}

TEST(Runner, AnExplicitKernelBypassesSelectionButNotTheMatch) {
    Bench b;
    const auto preferred = instance(fwd_kernel(128, 128, 64), "preferred");
    const auto other = instance(fwd_kernel(128, 128, 128), "other");
    const auto narrow = instance(fwd_kernel(64, 64), "narrow");
    for (const auto& kernel : {preferred, other, narrow}) b.registry.add(kernel);
    b.runner.run_explicit(identifier(other->config()), forward, skeleton_of(forward), {});
    EXPECT_EQ(other->launches, 1);
    EXPECT_EQ(preferred->launches, 0);
    try {
        b.runner.run_explicit(identifier(narrow->config()), forward, skeleton_of(forward), {});
        FAIL();
    } catch (const UnsupportedInvocation& error) {
        EXPECT_THAT(error.what(), HasSubstr("hdim_q is 128, this kernel takes at most 64"));
    }
    EXPECT_THROW(b.runner.run_explicit("nonsense", forward, skeleton_of(forward), {}), NoKernelFound);
}

TEST(Runner, RefusesArgumentsOfAnotherProblem) {
    Bench b;
    const auto kernel = instance(fwd_kernel());
    b.registry.add(kernel);
    const auto refusal = [&](const std::function<void(FwdArgs&)>& change) -> std::string {
        FwdArgs args = skeleton_of(forward);
        change(args);
        const std::string name = identifier(kernel->config());
        std::string said;
        for (const auto& run : {std::function([&] { b.runner.run(forward, args, {}); }),
                                std::function([&] { b.runner.run_explicit(name, forward, args, {}); })})
            try {
                run();
                return "ran";
            } catch (const InputError& error) {
                said = error.what();
            }
        return said;
    };
    EXPECT_EQ(refusal([](FwdArgs& args) { args.shape.nhead_k = 0; }),
              "nhead_k of the arguments is 0; the problem has 2");
    EXPECT_EQ(refusal([](FwdArgs& args) { args.shape.seqlen_k = 513; }),
              "seqlen_k of the arguments is 513; the problem has 512");
    EXPECT_EQ(refusal([](FwdArgs& args) { args.shape.hdim_v = 64; }),
              "signature.hdim_v of the arguments is 64; the problem has 128");
    EXPECT_EQ(refusal([](FwdArgs& args) { args.mask.type = MaskType::top_left; }),
              "signature.mask of the arguments is causal; the problem has none");
    EXPECT_EQ(refusal([](FwdArgs& args) { args.lse = args.o; }),
              "signature.has_lse of the arguments is true; the problem has false");
    EXPECT_EQ(refusal([](FwdArgs& args) { args.q.row_stride = 1; }),
              "tensor_alignment of the arguments is 2; the problem has 16");
    EXPECT_EQ(refusal([](FwdArgs& args) { args.v.type = ElementType::fp32; }),
              "v of the arguments holds fp32; the problem has fp16");
    EXPECT_EQ(kernel->launches, 0);
    EXPECT_EQ(refusal([](FwdArgs& args) { args.shape.max_seqlen_q = 0; }), "ran");
    EXPECT_THROW(b.runner.run(forward, {}, {}), ArgumentTypeError);
    EXPECT_THROW(b.runner.run(forward, PagedKvArgs{}, {}), ArgumentTypeError);
}

TEST(Runner, RefusesAnotherNumberOfSplitsThanThatOfThePlan) {
    Bench b;
    for (const KernelFamily family : {KernelFamily::fwd_splitkv, KernelFamily::fwd_splitkv_combine})
        b.registry.add(instance(kernel_of(family)));
    const Problem problem = builder_for(ApiFamily::fwd_splitkv).num_splits(0).build();
    SplitKvArgs args;
    args.shape = skeleton_of(forward).shape;
    args.partials.num_splits = b.dispatcher.plan(problem).problem().num_splits;
    EXPECT_EQ(b.runner.run(problem, args, {}).launches, 1);
    ++args.partials.num_splits;
    EXPECT_THROW(b.runner.run(problem, args, {}), InputError);
}

} // namespace
} // namespace fmha
