// Kernels of paged-KV and split-KV of every architecture, lane by lane on the emulated machine, against the reference.
#include "cached_problem.hpp"
#include "kernels/targets/hip/block_plan.hpp"
#include "kernels/targets/hip/cannot_execute.hpp"
#include "kernels/targets/hip/emulated/emulated_target.hpp"
#include "kernels/targets/hip/numerics.hpp"
#include "paths.hpp"
#include "tests/catalog/working_list.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace fmha::hip_target {
namespace {

using catalog::test::working_list;
using test::CachedProblem;
using test::CachedSpec;

/// The smallest kernels of every data type, mode, V layout and kind of cache, with their features in turn, and one of every path.
std::vector<KernelConfig> covering(const std::vector<KernelConfig>& list) {
    using Key = std::tuple<DataType, Mode, VLayout, bool, Pipeline>;
    std::map<Key, std::vector<KernelConfig>> by_key;
    for (const KernelConfig& kernel : list) {
        const Signature& s = kernel.signature;
        const std::int64_t size = std::int64_t{kernel.algorithm.tile.m0} * kernel.algorithm.tile.k0max;
        if (size > 128 * 128) continue;
        by_key[{s.data_type, s.mode, s.v_layout, s.use_paged_kv, kernel.algorithm.pipeline}].push_back(
            kernel);
    }
    std::vector<KernelConfig> out;
    std::size_t turn = 0;
    for (const auto& [key, kernels] : by_key)
        for (int n = 0; n < 2; ++n) out.push_back(kernels[turn++ * 7919 % kernels.size()]);
    test::add_missing_paths(out, list);
    return out;
}

class EmulatedCache : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Architectures, EmulatedCache,
                         testing::Values("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "sm_90"),
                         [](const auto& test) { return std::string(test.param); });

/// The target executes every kernel of the list; a few of them run.
void expect_right(std::string_view arch, KernelFamily family) {
    const std::vector<KernelConfig> list = working_list(arch, family);
    for (const KernelConfig& kernel : list)
        ASSERT_EQ(cannot_execute(kernel), std::nullopt) << identifier(kernel);
    std::size_t turn = 0;
    const std::vector<KernelConfig> kernels = covering(list);
    ASSERT_GE(kernels.size(), 4U);
    EXPECT_EQ(test::paths_of(kernels), test::paths_of(list));
    for (const KernelConfig& kernel : kernels) {
        CachedSpec spec = test::spec_for(kernel, turn++);
        spec.shape.nhead_q = 2;
        const CachedProblem problem(spec.shape, spec.cache);
        const Numerics numerics = numerics_of(kernel);
        std::string worst;
        double largest = 0.0;
        if (family == KernelFamily::fwd_splitkv) {
            emulate_kernel(kernel, problem.split(), {.threads = 1, .last_thread_first = turn % 2 == 1});
            largest = problem.judge_partials(numerics, worst);
        } else {
            PagedKvArgs args = problem.paged();
            if (!kernel.signature.has_lse) args.lse = {};
            emulate_kernel(kernel, args, {.threads = 1, .last_thread_first = turn % 2 == 1});
            const auto distance = problem.judge(numerics);
            worst = distance.worst;
            largest = std::max(distance.o, kernel.signature.has_lse ? distance.lse : 0.0);
            EXPECT_TRUE(distance.only_logical_elements_written && distance.rms <= distance.rms_limit)
                << identifier(kernel) << " rms " << distance.rms;
        }
        EXPECT_LE(largest, 1.0) << identifier(kernel) << "\n" << spec.cache.text() << " " << worst;
    }
}

TEST_P(EmulatedCache, PagedKernelsAreRight) {
    expect_right(GetParam(), KernelFamily::fwd_pagedkv);
}

TEST_P(EmulatedCache, SplitKernelsAreRight) {
    expect_right(GetParam(), KernelFamily::fwd_splitkv);
}

TEST_P(EmulatedCache, NoKeysNeedNoMemory) {
    std::size_t turn = 0;
    for (const KernelConfig& kernel : covering(working_list(GetParam(), KernelFamily::fwd_pagedkv))) {
        CachedSpec spec = test::spec_for(kernel, turn++);
        std::ranges::fill(spec.shape.seqlen_k, 0);
        const CachedProblem problem(spec.shape, spec.cache);
        PagedKvArgs args = problem.paged();
        args.place.block_table = nullptr;
        args.place.page_count = 0;
        args.k.data = args.v.data = nullptr;
        if (!kernel.signature.has_lse) args.lse = {};
        emulate_kernel(kernel, args, {.threads = 1});
        EXPECT_EQ(problem.judge(numerics_of(kernel)).complaint(kernel.signature.has_lse), "")
            << identifier(kernel);
    }
}

} // namespace
} // namespace fmha::hip_target
