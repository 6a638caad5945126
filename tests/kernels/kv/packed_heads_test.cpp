// One query row an entry: the heads of a KV head share a tile, on every target, and their results are those of a head a tile.
#include "cached_problem.hpp"
#include "kernels/programs/programs.hpp"
#include "kernels/targets/hip/emulated/emulated_target.hpp"
#include "kernels/targets/hip/numerics.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "kernels/targets/host/numerics.hpp"
#include "prefill_problem.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace fmha::test {
namespace {

using host_target::test::Shape;

constexpr Tile tile{.m0 = 32, .n0 = 64, .k0 = 32, .n1 = 32, .k1 = 32, .k0max = 64};
constexpr Tile prefill_tile{.m0 = 32, .n0 = 64, .k0 = 32, .n1 = 64, .k1 = 32, .k0max = 64};

/// Two waves of matrix instructions; on sm_90 one, of 16 rows, which asks for whole tiles ahead. "" is the host.
KernelConfig on(std::string_view arch, KernelConfig kernel) {
    if (arch.empty()) return kernel;
    kernel.arch = ArchName(arch);
    const bool decode = arch == "sm_90";
    const std::int16_t columns = decode ? 8 : 16, waves = decode ? 1 : 2;
    if (decode) kernel.algorithm.tile.m0 = 16;
    kernel.algorithm.wave = {waves, 1, 1, waves, 1, 1, 1, 1, 1};
    kernel.algorithm.warp = {16, columns, 16, 16, columns, 16, 1, 1, 1};
    return kernel;
}

template <class Args>
void launch(std::string_view arch, const KernelConfig& kernel, const Args& args) {
    if (arch.empty())
        host_target::run_kernel(kernel, args, {.threads = 1});
    else
        hip_target::emulate_kernel(kernel, args, {.threads = 1});
}

/// How far a problem's results are from the reference, in units of the limits.
double distance(KernelFamily family, std::string_view arch, const KernelConfig& kernel,
                const CachedProblem& problem) {
    const Numerics numerics =
        arch.empty() ? host_target::numerics_of(kernel) : hip_target::numerics_of(kernel);
    std::string worst;
    if (family == KernelFamily::fwd_splitkv) return problem.judge_partials(numerics, worst);
    const auto judged = problem.judge(numerics);
    EXPECT_TRUE(judged.acceptable()) << judged.worst;
    return judged.o;
}

std::int64_t blocks(const KernelConfig& kernel, const SplitKvArgs& args) {
    return kernels::Program<KernelFamily::fwd_splitkv>::Grid(kernel, args).size() / args.partials.num_splits;
}
std::int64_t blocks(const KernelConfig& kernel, const PagedKvArgs& args) {
    return kernels::Program<KernelFamily::fwd_pagedkv>::Grid(kernel, args).size();
}
std::int64_t blocks(const KernelConfig& kernel, const BatchPrefillArgs& args) {
    return kernels::Program<KernelFamily::batch_prefill>::Grid(kernel, args).size();
}

/// The same problem with a window that hides nothing but keeps heads from being packed.
template <class Args>
Args windowed(Args args) {
    constexpr std::int64_t wide = 1 << 20;
    if (args.mask.type == MaskType::no_mask)
        args.mask = {MaskType::bottom_right, wide, wide, 0};
    else
        args.mask.left = wide;
    return args;
}

Shape decode(bool group) {
    Shape shape;
    shape.group = group;
    shape.batch = 3;
    shape.nhead_q = 8;
    shape.nhead_k = 2;
    shape.hdim_q = 64;
    shape.hdim_v = 32;
    shape.seqlen_q = {1};
    if (group) shape.seqlen_q = {1, 0, 1};
    shape.seqlen_k = {300, 129, 1};
    return shape;
}

class PackedHeads : public testing::TestWithParam<const char*> {
  protected:
    /// Runs `args` as they are, and again where heads are not packed. Both must be right and have the same bits.
    template <class Args>
    static void expect_equal(KernelFamily family, const CachedProblem& problem, Args args) {
        const std::string_view arch = GetParam();
        const KernelConfig kernel = on(arch, problem.config(family, tile));
        launch(arch, kernel, args);
        EXPECT_EQ(blocks(kernel, args), args.shape.batch * args.shape.nhead_k);
        EXPECT_LE(distance(family, arch, kernel, problem), 1.0);
        const auto packed = problem.outputs();

        const Args unpacked = windowed(args);
        KernelConfig generic = kernel;
        generic.signature.mask = MaskClass::generic;
        launch(arch, generic, unpacked);
        EXPECT_EQ(blocks(generic, unpacked), args.shape.batch * args.shape.nhead_q);
        EXPECT_EQ(problem.outputs(), packed);
    }
    static void expect_equal(const Shape& shape, const CacheSpec& cache) {
        const CachedProblem problem(shape, cache);
        SCOPED_TRACE(cache.text() + (shape.group ? ", group" : ""));
        expect_equal(KernelFamily::fwd_splitkv, problem, problem.split());
        if (problem.paged().place.page_size > 0)
            expect_equal(KernelFamily::fwd_pagedkv, problem, problem.paged());
    }
};
INSTANTIATE_TEST_SUITE_P(Targets, PackedHeads,
                         testing::Values("", "gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "sm_90"),
                         [](const auto& test) { return std::string(*test.param ? test.param : "host"); });

TEST_P(PackedHeads, HaveTheBitsOfAHeadATile) {
    for (const bool group : {false, true})
        for (const MaskArgs& mask : {MaskArgs{}, MaskArgs{MaskType::bottom_right, -1, 0, 0},
                                     MaskArgs{MaskType::top_left, -1, 140, 0}}) {
            Shape shape = decode(group);
            shape.mask = mask;
            expect_equal(shape, {.cache = Cache::pages, .splits = 3, .order = 5});
        }
}

TEST_P(PackedHeads, HaveBiasesOfTheirOwn) {
    Shape shape = decode(false);
    shape.bias = BiasType::elementwise;
    shape.soft_cap = 2.0F;
    expect_equal(shape, {.cache = Cache::slots, .splits = 2});
}

/// Batch prefill looks pages up by rows or by tiles. RDNA has no kernels of it.
TEST_P(PackedHeads, OfBatchPrefillHaveTheBitsOfAHeadATile) {
    const std::string_view arch = GetParam();
    if (arch.starts_with("gfx1")) return;
    for (const PoolSpec& pool : {PoolSpec{KvLayout::linear, KvLookup::sglang_1d, 1},
                                 PoolSpec{KvLayout::vectorized, KvLookup::vllm_2d, 1024}})
        for (const auto& [mask, bias] :
             {std::pair(MaskArgs{}, BiasType::elementwise),
              std::pair(MaskArgs{MaskType::bottom_right, -1, 0, 0}, BiasType::no_bias),
              std::pair(MaskArgs{MaskType::top_left, -1, 140, 0}, BiasType::no_bias)}) {
            Shape shape = decode(true);
            shape.hdim_v = 64;
            shape.mask = mask;
            shape.bias = bias;
            const PrefillProblem problem(shape, pool);
            SCOPED_TRACE(pool.text());
            const KernelConfig kernel = on(arch, problem.config(prefill_tile));
            const Numerics numerics =
                arch.empty() ? host_target::numerics_of(kernel) : hip_target::numerics_of(kernel);
            launch(arch, kernel, problem.args());
            EXPECT_EQ(blocks(kernel, problem.args()), shape.batch * shape.nhead_k);
            const auto judged = problem.judge(numerics);
            EXPECT_TRUE(judged.acceptable()) << judged.worst;
            const auto packed = problem.outputs();

            KernelConfig generic = kernel;
            generic.signature.mask = MaskClass::generic;
            const BatchPrefillArgs apart = windowed(problem.args());
            launch(arch, generic, apart);
            EXPECT_EQ(blocks(generic, apart), shape.batch * shape.nhead_q);
            EXPECT_EQ(problem.outputs(), packed);
        }
}

TEST_P(PackedHeads, FillSeveralTiles) {
    Shape shape = decode(true);
    shape.nhead_q = 40;
    shape.nhead_k = 1;
    const CachedProblem problem(shape, {.cache = Cache::gappy_pages, .splits = 2, .order = 3});
    const KernelConfig kernel = on(GetParam(), problem.config(KernelFamily::fwd_splitkv, tile));
    launch(GetParam(), kernel, problem.split());
    EXPECT_EQ(blocks(kernel, problem.split()), 3 * (kernel.algorithm.tile.m0 == 16 ? 3 : 2));
    EXPECT_LE(distance(KernelFamily::fwd_splitkv, GetParam(), kernel, problem), 1.0);
}

/// A few rows of several heads (HeadRows). No list has such kernels of prefill over pages; the program takes them as those of other caches.
TEST(FewRowsOfPrefill, HaveTheBitsOfAHeadATile) {
    Shape shape = decode(true);
    shape.nhead_k = 2;
    shape.hdim_v = 64;
    shape.seqlen_q = {4, 0, 3};
    shape.mask = {MaskType::bottom_right, -1, 0, 0};
    shape.sink_logit = true;
    for (const char* arch : {"", "sm_90"})
        for (const KvLookup lookup : {KvLookup::vllm_2d, KvLookup::sglang_1d}) {
            const PrefillProblem problem(shape, {.lookup = lookup});
            SCOPED_TRACE(*arch == '\0' ? "host" : arch);
            KernelConfig apart = on(arch, problem.config(prefill_tile));
            apart.algorithm.tile.m0 = 16;
            KernelConfig kernel = apart;
            kernel.algorithm.max_seq_len_q = 8;
            const Numerics numerics =
                *arch == '\0' ? host_target::numerics_of(kernel) : hip_target::numerics_of(kernel);
            launch(arch, kernel, problem.args());
            const auto judged = problem.judge(numerics);
            EXPECT_TRUE(judged.acceptable()) << judged.worst;
            const auto packed = problem.outputs();
            launch(arch, apart, problem.args());
            EXPECT_EQ(4 * blocks(kernel, problem.args()), blocks(apart, problem.args()));
            EXPECT_EQ(problem.outputs(), packed);
        }
}

/// Every feature that makes rows of heads differ keeps them apart.
TEST(HeadsStayApart, WhereMasksSlopesOrSinksDiffer) {
    const auto blocks_of = [](const Shape& shape, KernelFamily family) {
        const CachedProblem problem(shape, {});
        const KernelConfig kernel = problem.config(family, tile);
        return family == KernelFamily::fwd_splitkv ? blocks(kernel, problem.split())
                                                   : blocks(kernel, problem.paged());
    };
    const std::int64_t packed = 3 * 2, apart = 3 * 8;
    Shape shape = decode(false);
    EXPECT_EQ(blocks_of(shape, KernelFamily::fwd_pagedkv), packed);
    shape.seqlen_q = {2};
    EXPECT_EQ(blocks_of(shape, KernelFamily::fwd_pagedkv), apart);
    shape = decode(false);
    shape.mask = {MaskType::bottom_right, 100, 0, 0};
    EXPECT_EQ(blocks_of(shape, KernelFamily::fwd_splitkv), apart);
    shape.mask = {MaskType::window_generic, 0, 100, 0};
    EXPECT_EQ(blocks_of(shape, KernelFamily::fwd_splitkv), packed);
    shape = decode(false);
    shape.bias = BiasType::alibi;
    EXPECT_EQ(blocks_of(shape, KernelFamily::fwd_splitkv), apart);
    shape = decode(false);
    shape.sink_logit = true;
    EXPECT_EQ(blocks_of(shape, KernelFamily::fwd_splitkv), packed); // combining adds it
    EXPECT_EQ(blocks_of(shape, KernelFamily::fwd_pagedkv), apart);

    const PrefillProblem prefill(decode(true), {});
    KernelConfig kernel = prefill.config(tile);
    EXPECT_EQ(blocks(kernel, prefill.args()), packed);
    kernel.signature.has_dropout = true;
    EXPECT_EQ(blocks(kernel, prefill.args()), apart);
    kernel.signature.has_dropout = false;
    kernel.signature.qscale = QScale::per_token_head; // of a query row and head
    EXPECT_EQ(blocks(kernel, prefill.args()), apart);
}

} // namespace
} // namespace fmha::test
