// Append kernels of every architecture, lane by lane on the emulated machine, against the reference.
#include "append_problem.hpp"
#include "append_specs.hpp"
#include "kernels/targets/hip/append_plan.hpp"
#include "kernels/targets/hip/cannot_execute.hpp"
#include "kernels/targets/hip/emulated/emulated_target.hpp"
#include "tests/catalog/working_list.hpp"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

namespace fmha::hip_target {
namespace {

using catalog::test::working_list;
using test::AppendProblem;
using test::AppendSpec;
using test::AppendVerdict;

class EmulatedAppend : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Architectures, EmulatedAppend,
                         testing::Values("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1151", "gfx1201",
                                         "sm_90"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(EmulatedAppend, IsRightWithEveryHouseKernel) {
    const std::vector<KernelConfig> kernels = working_list(GetParam(), KernelFamily::fwd_appendkv);
    ASSERT_GE(kernels.size(), 90U);
    std::size_t turn = 0;
    for (const KernelConfig& kernel : kernels) {
        ASSERT_EQ(cannot_execute(kernel), std::nullopt) << identifier(kernel);
        const std::vector<AppendSpec> specs = test::specs_for(kernel);
        // Two problems a kernel, in turn, so that each head dimension and each padding meets all of them.
        for (int n = 0; n < 2; ++n) {
            const AppendSpec& spec = specs[turn++ % specs.size()];
            const AppendProblem problem(kernel, spec);
            emulate_kernel(kernel, problem.args(), {.threads = 1, .last_thread_first = n == 1});
            const AppendVerdict verdict = problem.judge();
            EXPECT_TRUE(verdict.acceptable()) << identifier(kernel) << "\n"
                                              << spec.text() << "\n"
                                              << verdict.text();
        }
    }
}

// Every element of a tile belongs to one register of one thread.
TEST_P(EmulatedAppend, PlansTilesThatCoverThemselves) {
    for (const KernelConfig& kernel : working_list(GetParam(), KernelFamily::fwd_appendkv)) {
        const AppendPlan plan = append_plan_of(kernel);
        ASSERT_EQ(plan.problem, PlanProblem::none);
        std::set<std::tuple<int, int>> elements;
        for (int thread = 0; thread < plan.threads; ++thread)
            for (int tile = 0; tile < plan.tile.row_tiles; ++tile)
                for (int r = 0; r < plan.tile.fragment; ++r) {
                    const int lane = thread % plan.wave_size;
                    elements.emplace(thread / plan.wave_size * plan.rows.wave_rows + tile * plan.tile.rows +
                                         plan.tile.row.at(lane, r),
                                     plan.tile.col.at(lane, r));
                }
        EXPECT_EQ(elements.size(), 64U * kernels::rotary_pairs) << identifier(kernel);
        EXPECT_EQ(*elements.rbegin(), std::tuple(63, kernels::rotary_pairs - 1));
        EXPECT_EQ(plan.threads % plan.copies.line_threads, 0);
        EXPECT_LE(plan.tile.registers, 8);
    }
}

} // namespace
} // namespace fmha::hip_target
