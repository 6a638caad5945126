// A few query rows an entry, as those of a speculation: the rows of several heads of a KV head share a tile, on the host and on the emulated
// machine. Results are those of a head a tile, and each known mistake is noticed.
#include "cached_problem.hpp"
#include "kernels/programs/programs.hpp"
#include "kernels/targets/hip/cannot_execute.hpp"
#include "kernels/targets/hip/emulated/executor.hpp"
#include "kernels/targets/hip/family_context.hpp"
#include "kernels/targets/hip/numerics.hpp"
#include "kernels/targets/host/context.hpp"
#include "kernels/targets/host/executor.hpp"
#include "kernels/targets/host/numerics.hpp"
#include "mistaken_rows.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fmha::test {
namespace {

using host_target::test::Shape;

constexpr std::int64_t most_rows = 8;

/// A kernel that packs rows, or one that has a head a tile. With several waves each has keys of its own.
KernelConfig kernel_of(const CachedProblem& problem, KernelFamily family, bool packs, int key_waves) {
    const auto waves = static_cast<std::int16_t>(key_waves);
    const auto keys = static_cast<std::int16_t>(key_waves > 1 ? 64 : 32);
    KernelConfig kernel =
        problem.config(family, {.m0 = 16, .n0 = keys, .k0 = 32, .n1 = 64, .k1 = keys, .k0max = 64});
    kernel.arch = "sm_90";
    kernel.algorithm.wave = {1, waves, 1, 1, 1, waves, 1, 1, 1};
    kernel.algorithm.warp = {16, 8, 16, 16, 8, 16, 1, 1, 1};
    kernel.algorithm.max_seq_len_q = packs ? most_rows : 0;
    return kernel;
}

/// Twelve heads over three KV heads: four share a tile, or two.
Shape rows_of(std::int64_t rows) {
    Shape shape;
    shape.batch = 2;
    shape.nhead_q = 12;
    shape.nhead_k = 3;
    shape.hdim_q = shape.hdim_v = 64;
    shape.seqlen_q = {rows};
    shape.seqlen_k = {150, 67};
    return shape;
}

template <KernelFamily family>
void launch(bool host, const KernelConfig& kernel, const typename kernels::Program<family>::Args& args,
            RowMistake mistake = RowMistake::none) {
    const kernels::Program<family> program;
    if (host) {
        host_target::run_blocks(program, kernel, args, {.threads = 1}, [&](auto* trace) {
            return MistakenRows<host_target::HostContext>(mistake, kernel, trace);
        });
        return;
    }
    using namespace hip_target;
    using Setup = RunTimeOf<family>;
    ASSERT_EQ(cannot_execute(kernel), std::nullopt);
    emulate_blocks(
        program, kernel, args, {.threads = 1},
        [](const MachineShape& shape) { return EmulatedMachine(shape); },
        [mistake](EmulatedMachine& machine, const Setup& setup) {
            using Context = typename FamilyContext<family>::template Type<EmulatedMachine, Setup>;
            return MistakenRows<Context>(mistake, machine, setup);
        });
}

template <KernelFamily family>
const auto& args_of(const CachedProblem& problem) {
    if constexpr (family == KernelFamily::fwd_splitkv)
        return problem.split();
    else
        return problem.paged();
}

/// How far results are from the reference, in units of the limits.
template <KernelFamily family>
double distance(bool host, const KernelConfig& kernel, const CachedProblem& problem) {
    const Numerics numerics = host ? host_target::numerics_of(kernel) : hip_target::numerics_of(kernel);
    std::string worst;
    if (family == KernelFamily::fwd_splitkv) return problem.judge_partials(numerics, worst);
    const auto judged = problem.judge(numerics);
    return judged.acceptable() ? judged.o : 2.0;
}

/// Runs a problem with heads that share tiles and apart. Both must be right and have the same bits.
template <KernelFamily family>
void expect_equal(bool host, const Shape& shape, const CacheSpec& cache, std::int64_t sharing,
                  int key_waves) {
    const CachedProblem problem(shape, cache);
    SCOPED_TRACE(cache.text() + " rows " + std::to_string(shape.seqlen_q[0]) +
                 (shape.group ? ", group" : ""));
    const auto& args = args_of<family>(problem);
    const KernelConfig kernel = kernel_of(problem, family, true, key_waves);
    const auto blocks = [&](const KernelConfig& of) {
        return typename kernels::Program<family>::Grid(of, args).size();
    };
    launch<family>(host, kernel, args);
    EXPECT_LE(distance<family>(host, kernel, problem), 1.0);
    const auto packed = problem.outputs();
    const KernelConfig apart = kernel_of(problem, family, false, key_waves);
    EXPECT_EQ(blocks(kernel) * sharing, blocks(apart));
    launch<family>(host, apart, args);
    EXPECT_EQ(problem.outputs(), packed);
}

class FewRows : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Targets, FewRows, testing::Values(true, false),
                         [](const auto& test) { return test.param ? "host" : "emulated"; });

TEST_P(FewRows, HaveTheBitsOfAHeadATile) {
    const std::vector<MaskArgs> masks{{},
                                      {MaskType::bottom_right, -1, 0, 0},
                                      {MaskType::top_left, 20, 50, 3},
                                      {MaskType::bottom_right, 40, 1, 0}};
    for (const auto& [rows, sharing] :
         {std::pair{2, 4}, std::pair{3, 4}, std::pair{4, 4}, std::pair{5, 2}, std::pair{8, 2}})
        for (const MaskArgs& mask : masks) {
            Shape shape = rows_of(rows);
            shape.mask = mask;
            expect_equal<KernelFamily::fwd_splitkv>(GetParam(), shape, {.splits = 3, .order = 5}, sharing, 1);
            shape.sink_logit = true;
            expect_equal<KernelFamily::fwd_pagedkv>(GetParam(), shape, {.order = 5}, sharing, 1);
        }
}

TEST_P(FewRows, EndWithTheirEntry) {
    Shape shape = rows_of(4);
    shape.group = true;
    shape.batch = 3;
    shape.seqlen_q = {4, 0, 3};
    shape.seqlen_k = {150, 40, 67};
    shape.mask = {MaskType::bottom_right, -1, 0, 0};
    shape.soft_cap = 2.0F;
    for (const Cache cache : {Cache::pages, Cache::gappy_pages}) {
        expect_equal<KernelFamily::fwd_splitkv>(GetParam(), shape, {.cache = cache, .splits = 2, .order = 3},
                                                4, 1);
        expect_equal<KernelFamily::fwd_pagedkv>(GetParam(), shape, {.cache = cache, .order = 3}, 4, 1);
    }
}

TEST_P(FewRows, OfWavesWithKeysOfTheirOwn) {
    Shape shape = rows_of(4);
    shape.mask = {MaskType::bottom_right, -1, 0, 0};
    expect_equal<KernelFamily::fwd_splitkv>(GetParam(), shape, {.cache = Cache::slots, .splits = 2}, 4, 4);
    shape.padding = 1; // lines that cannot be copied in units of 16 bytes
    shape.hdim_v = 40;
    expect_equal<KernelFamily::fwd_splitkv>(GetParam(), shape, {.cache = Cache::contiguous, .splits = 2}, 4,
                                            4);
}

TEST_P(FewRows, OfHeadsThatDoNotDivide) {
    Shape shape = rows_of(2);
    shape.mask = {MaskType::bottom_right, -1, 0, 0};
    for (const auto& [heads, sharing] :
         {std::pair{3, 1}, std::pair{9, 1}, std::pair{18, 2}, std::pair{24, 8}}) {
        shape.nhead_q = heads;
        expect_equal<KernelFamily::fwd_splitkv>(GetParam(), shape, {.splits = 2}, sharing, 1);
    }
}

TEST_P(FewRows, NoticesEveryMistake) {
    Shape shape = rows_of(4);
    shape.mask = {MaskType::bottom_right, -1, 0, 0};
    shape.sink_logit = true;
    CachedProblem problem(shape, {.splits = 2, .order = 5});
    for (const RowMistake mistake : {RowMistake::none, RowMistake::masked_by_tile, RowMistake::stored_as_rows,
                                     RowMistake::stored_to_one}) {
        // The host stores a head after the other, wherever a row says that it is.
        const bool wrong =
            mistake != RowMistake::none && !(GetParam() && mistake == RowMistake::stored_to_one);
        SCOPED_TRACE(static_cast<int>(mistake));
        const KernelConfig split = kernel_of(problem, KernelFamily::fwd_splitkv, true, 4),
                           paged = kernel_of(problem, KernelFamily::fwd_pagedkv, true, 1);
        problem.poison_outputs();
        launch<KernelFamily::fwd_splitkv>(GetParam(), split, problem.split(), mistake);
        EXPECT_EQ(distance<KernelFamily::fwd_splitkv>(GetParam(), split, problem) > 1.0, wrong);
        launch<KernelFamily::fwd_pagedkv>(GetParam(), paged, problem.paged(), mistake);
        EXPECT_EQ(distance<KernelFamily::fwd_pagedkv>(GetParam(), paged, problem) > 1.0, wrong);
    }
}

/// Kernels whose queries go to registers, as those of AMD do, would not find them.
TEST(FewRowsOnAmd, NeedCopiesToLds) {
    const CachedProblem problem(rows_of(4), {});
    KernelConfig kernel = kernel_of(problem, KernelFamily::fwd_splitkv, true, 1);
    EXPECT_EQ(hip_target::cannot_execute(kernel), std::nullopt);
    kernel.arch = "gfx942";
    kernel.algorithm.warp = {16, 16, 16, 16, 16, 16, 1, 1, 1};
    ASSERT_NE(hip_target::cannot_execute(kernel), std::nullopt);
    EXPECT_EQ(*hip_target::cannot_execute(kernel),
              "rows of several query heads share a tile on sm_90 alone, found max_seq_len_q=8 and m0=16");
}

} // namespace
} // namespace fmha::test
