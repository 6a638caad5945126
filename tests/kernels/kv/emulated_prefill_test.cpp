// Kernels of batch prefill of every architecture that lists them, lane by lane on the emulated machine, against the reference.
#include "kernels/targets/hip/cannot_execute.hpp"
#include "kernels/targets/hip/emulated/emulated_target.hpp"
#include "kernels/targets/hip/numerics.hpp"
#include "paths.hpp"
#include "prefill_problem.hpp"
#include "tests/catalog/working_list.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace fmha::hip_target {
namespace {

using catalog::test::working_list;
using test::PrefillProblem;
using test::PrefillSpec;

/// The smallest kernels of every data type, layout, page size and kind of descale, with their other features in turn, and one of every
/// path.
std::vector<KernelConfig> covering(const std::vector<KernelConfig>& list) {
    using Key = std::tuple<DataType, KvLayout, int, QScale>;
    std::map<Key, std::vector<KernelConfig>> by_key;
    for (const KernelConfig& kernel : list) {
        const Signature& s = kernel.signature;
        if (kernel.algorithm.tile.k0max > 128) continue;
        by_key[{s.data_type, s.kv_layout, s.page_size, s.qscale}].push_back(kernel);
    }
    std::vector<KernelConfig> out;
    std::size_t turn = 0;
    for (const auto& [key, kernels] : by_key) out.push_back(kernels[turn++ * 7919 % kernels.size()]);
    test::add_missing_paths(out, list);
    return out;
}

class EmulatedPrefill : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Architectures, EmulatedPrefill,
                         testing::Values("gfx90a", "gfx942", "gfx950", "sm_90"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(EmulatedPrefill, KernelsAreRight) {
    const std::vector<KernelConfig> list = working_list(GetParam(), KernelFamily::batch_prefill);
    for (const KernelConfig& kernel : list)
        ASSERT_EQ(cannot_execute(kernel), std::nullopt) << identifier(kernel);
    std::size_t turn = 0;
    const std::vector<KernelConfig> kernels = covering(list);
    ASSERT_GE(kernels.size(), 10U);
    EXPECT_EQ(test::paths_of(kernels), test::paths_of(list));
    for (const KernelConfig& kernel : kernels) {
        PrefillSpec spec = test::prefill_spec_for(kernel, turn++);
        spec.shape.nhead_q = 2;
        const PrefillProblem problem(spec.shape, spec.pool);
        BatchPrefillArgs args = problem.args();
        if (!kernel.signature.has_lse) args.lse = {};
        emulate_kernel(kernel, args, {.threads = 1, .last_thread_first = turn % 2 == 1});
        const auto distance = problem.judge(numerics_of(kernel));
        EXPECT_LE(distance.o, 1.0) << identifier(kernel) << "\n" << spec.pool.text() << " " << distance.worst;
        EXPECT_TRUE(distance.lse <= 1.0 || !kernel.signature.has_lse) << identifier(kernel);
        EXPECT_TRUE(distance.only_logical_elements_written && distance.rms <= distance.rms_limit)
            << identifier(kernel) << " rms " << distance.rms;
    }
}

TEST(EmulatedPrefill, ArchitecturesWithoutKernelsListNone) {
    for (const char* arch : {"gfx1100", "gfx1151", "gfx1201"})
        EXPECT_TRUE(working_list(arch, KernelFamily::batch_prefill).empty()) << arch;
}

} // namespace
} // namespace fmha::hip_target
