// Combine kernels of every architecture, lane by lane on the emulated machine, against the reference.
#include "combine_problem.hpp"
#include "combine_specs.hpp"
#include "kernels/targets/hip/cannot_execute.hpp"
#include "kernels/targets/hip/emulated/emulated_target.hpp"
#include "kernels/targets/hip/numerics.hpp"
#include "tests/catalog/working_list.hpp"

#include <gtest/gtest.h>

namespace fmha::hip_target {
namespace {

using test::CombineProblem;
using test::CombineSpec;
using test::CombineVerdict;

class EmulatedCombine : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Architectures, EmulatedCombine,
                         testing::Values("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1151", "gfx1201",
                                         "sm_90"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(EmulatedCombine, IsRightWithEveryHouseKernel) {
    const std::vector<KernelConfig> kernels =
        catalog::test::working_list(GetParam(), KernelFamily::fwd_splitkv_combine);
    ASSERT_GE(kernels.size(), 100U);
    std::size_t turn = 0;
    for (const KernelConfig& kernel : kernels) {
        ASSERT_EQ(cannot_execute(kernel), std::nullopt) << identifier(kernel);
        const std::vector<CombineSpec> specs = test::specs_for(kernel);
        // One problem a kernel, in turn, so that each head dimension and each padding meets all of them.
        const CombineSpec& spec = specs[turn % specs.size()];
        const CombineProblem problem(kernel, spec);
        emulate_kernel(kernel, problem.args(), {.threads = 1, .last_thread_first = turn % 2 == 1});
        ++turn;
        const CombineVerdict verdict = problem.judge(numerics_of(kernel));
        EXPECT_TRUE(verdict.acceptable())
            << identifier(kernel) << "\n"
            << spec.text() << "\no " << verdict.o << " lse " << verdict.lse << " rms " << verdict.rms
            << " exact " << verdict.exact_rows_exact << " memory " << verdict.only_outputs_written << " "
            << verdict.worst;
    }
}

} // namespace
} // namespace fmha::hip_target
