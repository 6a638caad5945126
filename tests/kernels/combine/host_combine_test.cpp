// Combine kernels on the host target against the reference.
#include "combine_problem.hpp"
#include "combine_specs.hpp"
#include "dispatcher/types/error.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "kernels/targets/host/numerics.hpp"
#include "tests/catalog/working_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace fmha::host_target {
namespace {

using catalog::test::working_list;
using test::CombineProblem;
using test::CombineSpec;
using test::CombineVerdict;
using testing::HasSubstr;

CombineVerdict verdict_of(const KernelConfig& kernel, const CombineSpec& spec) {
    const CombineProblem problem(kernel, spec);
    run_kernel(kernel, problem.args(), {.threads = 1});
    return problem.judge(numerics_of(kernel));
}

class HouseCombine : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Architectures, HouseCombine, testing::Values("gfx942", "gfx950", "sm_90"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(HouseCombine, IsRightWithEveryKernel) {
    const std::vector<KernelConfig> kernels = working_list(GetParam(), KernelFamily::fwd_splitkv_combine);
    ASSERT_GE(kernels.size(), 100U);
    std::size_t turn = 0;
    for (const KernelConfig& kernel : kernels) {
        ASSERT_EQ(cannot_execute(kernel), std::nullopt) << identifier(kernel);
        const std::vector<CombineSpec> specs = test::specs_for(kernel);
        // Four problems a kernel, in turn, so that each head dimension and each padding meets all of them.
        for (int n = 0; n < 4; ++n) {
            const CombineSpec& spec = specs[turn++ % specs.size()];
            const CombineVerdict verdict = verdict_of(kernel, spec);
            EXPECT_TRUE(verdict.acceptable())
                << identifier(kernel) << "\n"
                << spec.text() << "\no " << verdict.o << " lse " << verdict.lse << " rms " << verdict.rms
                << " exact " << verdict.exact_rows_exact << " memory " << verdict.only_outputs_written << " "
                << verdict.worst;
        }
    }
}

/// The first kernel of gfx950 with every padding, LSE and the mode.
KernelConfig padded_kernel(Mode mode) {
    for (const KernelConfig& kernel : working_list("gfx950", KernelFamily::fwd_splitkv_combine))
        if (kernel.signature.mode == mode && kernel.signature.has_lse && kernel.algorithm.pad.s &&
            kernel.algorithm.pad.dv != 0)
            return kernel;
    throw Error("the catalogue has no such kernel");
}

TEST(HostCombine, GivesTheSameBitsWithAnyNumberOfThreads) {
    const KernelConfig kernel = padded_kernel(Mode::group);
    const CombineSpec spec{
        .batch = 3, .heads = 4, .seqlen_q = {20, 3, 9}, .splits = 6, .sinks = test::Sinks::normal};
    const CombineProblem one(kernel, spec), many(kernel, spec);
    run_kernel(kernel, one.args(), {.threads = 1});
    run_kernel(kernel, many.args(), {.threads = 5});
    EXPECT_EQ(one.outputs(), many.outputs());
}

TEST(HostCombine, RefusesWhatItCannotTake) {
    const KernelConfig kernel = padded_kernel(Mode::batch);
    const CombineProblem problem(kernel, {});
    const auto refusal = [&](const SplitKvArgs& args, const KernelConfig& config) -> std::string {
        try {
            run_kernel(config, args);
        } catch (const UnsupportedInvocation& error) {
            return error.what();
        }
        return "none";
    };
    EXPECT_EQ(refusal(problem.args(), kernel), "none");
    KernelConfig few = kernel;
    few.algorithm.max_splits_log2 = 1;
    EXPECT_THAT(refusal(problem.args(), few), HasSubstr("num_splits is 3, the kernel takes 1 to 2 (S-7)"));
    SplitKvArgs args = problem.args();
    args.shape.hdim_v = kernel.signature.hdim_v + 8;
    EXPECT_THAT(refusal(args, kernel), HasSubstr("exceeds the kernel's"));
    args = problem.args();
    args.partials.o_acc.type = ElementType::fp16;
    EXPECT_THAT(refusal(args, kernel), HasSubstr("tensor o_acc is fp16, the kernel takes fp32"));
    args = problem.args();
    args.partials.o_acc.data = nullptr;
    EXPECT_THROW(run_kernel(kernel, args), InputError) << "it has elements";
    args.shape.seqlen_q = 0;
    EXPECT_EQ(refusal(args, kernel), "none");
    args = problem.args();
    args.shape.mode = Mode::group;
    EXPECT_THAT(refusal(args, kernel), HasSubstr("mode is group, the kernel runs batch"));
    KernelConfig silent = kernel;
    silent.signature.has_lse = false;
    EXPECT_THAT(refusal(problem.args(), silent), HasSubstr("does not store it"));
    EXPECT_THROW(run_kernel(kernel, FwdArgs{}), ArgumentTypeError);
}

} // namespace
} // namespace fmha::host_target
