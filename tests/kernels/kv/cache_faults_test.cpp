// Programs over a cache with one known mistake, on the host and on the emulated machine: the judgement notices each.
#include "cached_problem.hpp"
#include "kernels/targets/faulty_cache.hpp"
#include "kernels/targets/hip/block_context.hpp"
#include "kernels/targets/hip/emulated/executor.hpp"
#include "kernels/targets/hip/numerics.hpp"
#include "kernels/targets/host/context.hpp"
#include "kernels/targets/host/executor.hpp"
#include "kernels/targets/host/numerics.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fmha::test {
namespace {

using host_target::test::Shape;
using targets::CacheFault;
using targets::FaultyCache;
constexpr auto no_fault = static_cast<CacheFault>(255);

template <KernelFamily family>
void run_on_host(const KernelConfig& kernel, const typename kernels::Program<family>::Args& args,
                 CacheFault fault) {
    host_target::run_blocks(kernels::Program<family>{}, kernel, args, {.threads = 1}, [&](auto* trace) {
        return FaultyCache<host_target::HostContext>(fault, kernel, trace);
    });
}

template <KernelFamily family>
void run_emulated(const KernelConfig& kernel, const typename kernels::Program<family>::Args& args,
                  CacheFault fault) {
    using namespace hip_target;
    using Setup = RunTimeOf<family>;
    emulate_blocks(
        kernels::Program<family>{}, kernel, args, {.threads = 1},
        [](const MachineShape& shape) { return EmulatedMachine(shape); },
        [fault](EmulatedMachine& machine, const Setup& setup) {
            return FaultyCache<BlockContext<EmulatedMachine, Setup>>(fault, machine, setup);
        });
}

/// Three entries whose keys lie in several pages, or slots, that are not those of their numbers.
std::vector<CachedSpec> problems(KernelFamily family) {
    Shape batch;
    batch.batch = 3;
    batch.hdim_q = 64;
    batch.hdim_v = 32;
    batch.seqlen_q = {3};
    batch.seqlen_k = {260, 150, 300};
    batch.sink_logit = true;
    Shape group = batch;
    group.group = true;
    group.seqlen_q = {2, 5, 3};
    Shape decode = batch; // heads share a tile
    decode.seqlen_q = {1};
    decode.sink_logit = family == KernelFamily::fwd_splitkv;
    const std::int64_t splits = family == KernelFamily::fwd_splitkv ? 3 : 1;
    std::vector<CachedSpec> all{{decode, {.cache = Cache::pages, .splits = splits, .order = 2}},
                                {batch, {.cache = Cache::pages, .splits = splits, .order = 3}},
                                {group, {.cache = Cache::pages, .splits = splits, .order = 5}},
                                {group, {.cache = Cache::gappy_pages, .splits = splits, .order = 7}}};
    if (family == KernelFamily::fwd_splitkv)
        all.push_back({batch, {.cache = Cache::slots, .splits = splits, .order = 8}});
    return all;
}

KernelConfig kernel_for(const CachedProblem& problem, KernelFamily family, std::string_view arch) {
    KernelConfig kernel =
        problem.config(family, {.m0 = 32, .n0 = 64, .k0 = 32, .n1 = 32, .k1 = 32, .k0max = 64});
    kernel.arch = ArchName(arch);
    kernel.algorithm.wave = {2, 1, 1, 2, 1, 1, 1, 1, 1};
    const std::int16_t columns = arch == "sm_90" ? 8 : 16;
    kernel.algorithm.warp = {16, columns, 16, 16, columns, 16, 1, 1, 1};
    return kernel;
}

/// How many problems show that a run with `fault` is wrong.
template <KernelFamily family>
int noticed(bool emulated, std::string_view arch, CacheFault fault) {
    int count = 0;
    for (const CachedSpec& spec : problems(family)) {
        const CachedProblem problem(spec.shape, spec.cache);
        const KernelConfig kernel = kernel_for(problem, family, arch);
        const Numerics numerics =
            emulated ? hip_target::numerics_of(kernel) : host_target::numerics_of(kernel);
        std::string worst;
        bool right = false;
        if constexpr (family == KernelFamily::fwd_pagedkv) {
            emulated ? run_emulated<family>(kernel, problem.paged(), fault)
                     : run_on_host<family>(kernel, problem.paged(), fault);
            right = problem.judge(numerics).acceptable();
        } else {
            emulated ? run_emulated<family>(kernel, problem.split(), fault)
                     : run_on_host<family>(kernel, problem.split(), fault);
            right = problem.judge_partials(numerics, worst) <= 1.0;
        }
        count += right ? 0 : 1;
    }
    return count;
}

bool of_splits(CacheFault fault) {
    return fault >= CacheFault::split_edge_late;
}

class CacheFaults : public testing::TestWithParam<CacheFault> {};
INSTANTIATE_TEST_SUITE_P(All, CacheFaults, testing::ValuesIn([] {
                             std::vector<CacheFault> all;
                             for (const auto& entry : EnumTable<CacheFault>::names)
                                 all.push_back(entry.value);
                             return all;
                         }()),
                         [](const auto& test) { return std::string(to_string(test.param)); });

TEST_P(CacheFaults, AreNoticedOnTheHost) {
    EXPECT_GE(noticed<KernelFamily::fwd_splitkv>(false, "gfx950", GetParam()), 1);
    if (of_splits(GetParam()) || GetParam() == CacheFault::cache_slot_ignored) return; // paged-KV has neither
    EXPECT_GE(noticed<KernelFamily::fwd_pagedkv>(false, "gfx950", GetParam()), 1);
}

TEST_P(CacheFaults, AreNoticedOnTheEmulatedMachine) {
    for (const char* arch : {"gfx942", "gfx1201", "sm_90"}) {
        EXPECT_GE(noticed<KernelFamily::fwd_splitkv>(true, arch, GetParam()), 1) << arch;
        if (of_splits(GetParam()) || GetParam() == CacheFault::cache_slot_ignored) continue;
        EXPECT_GE(noticed<KernelFamily::fwd_pagedkv>(true, arch, GetParam()), 1) << arch;
    }
}

TEST(CacheFaultsNone, TheSameProblemsAreAcceptedWithoutAFault) {
    for (const char* arch : {"gfx942", "gfx1201", "sm_90"})
        for (const bool emulated : {false, true}) {
            EXPECT_EQ(noticed<KernelFamily::fwd_splitkv>(emulated, arch, no_fault), 0) << arch << emulated;
            EXPECT_EQ(noticed<KernelFamily::fwd_pagedkv>(emulated, arch, no_fault), 0) << arch << emulated;
        }
}

} // namespace
} // namespace fmha::test
