// Kernels of paged-KV and split-KV on the host target against the reference.
#include "cached_problem.hpp"
#include "dispatcher/types/error.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "kernels/targets/host/numerics.hpp"
#include "tests/catalog/working_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace fmha::host_target {
namespace {

using catalog::test::working_list;
using fmha::test::Cache;
using fmha::test::CachedProblem;
using fmha::test::CachedSpec;
using fmha::test::CacheSpec;
using testing::HasSubstr;
using Shape = host_target::test::Shape;

constexpr Tile tile{.m0 = 32, .n0 = 64, .k0 = 32, .n1 = 32, .k1 = 32, .k0max = 64};

/// The kernel that combines for a main kernel.
KernelConfig combiner(const KernelConfig& main) {
    KernelConfig config;
    config.arch = main.arch;
    config.signature = main.signature;
    config.signature.family = KernelFamily::fwd_splitkv_combine;
    config.signature.has_lse = true;
    config.algorithm.tile.n1 = 32;
    config.algorithm.pad.s = true;
    config.algorithm.pad.dv = 1;
    return config;
}

void run(const KernelConfig& kernel, const CachedProblem& problem, int threads = 1) {
    if (kernel.signature.family == KernelFamily::fwd_pagedkv) {
        PagedKvArgs args = problem.paged();
        if (!kernel.signature.has_lse) args.lse = {};
        run_kernel(kernel, args, {.threads = threads});
        return;
    }
    run_kernel(kernel, problem.split(), {.threads = threads});
    run_kernel(combiner(kernel), problem.split(), {.threads = threads});
}

/// Empty when the results are right.
std::string complaint(const KernelConfig& kernel, const CachedProblem& problem) {
    std::string worst;
    const Numerics numerics = numerics_of(kernel);
    if (kernel.signature.family == KernelFamily::fwd_splitkv) {
        const double partials = problem.judge_partials(numerics, worst);
        if (!(partials <= 1.0)) return "partials " + std::to_string(partials) + " " + worst;
    }
    Numerics stored = numerics;
    const Numerics last = numerics_of(combiner(kernel));
    stored.u_o = last.u_o;
    stored.f_o = last.f_o;
    return problem.judge(stored).complaint(kernel.signature.has_lse);
}

struct Listed {
    const char* arch;
    KernelFamily family;
    std::size_t step; ///< every so many kernels
};
void PrintTo(const Listed& listed, std::ostream* out) {
    *out << listed.arch;
}

class HouseKernelsOverACache : public testing::TestWithParam<Listed> {};
INSTANTIATE_TEST_SUITE_P(Families, HouseKernelsOverACache,
                         testing::Values(Listed{"gfx950", KernelFamily::fwd_pagedkv, 1},
                                         Listed{"gfx942", KernelFamily::fwd_pagedkv, 3},
                                         Listed{"gfx950", KernelFamily::fwd_splitkv, 11},
                                         Listed{"gfx942", KernelFamily::fwd_splitkv, 37}),
                         [](const auto& test) {
                             return std::string(test.param.arch) + "_" +
                                    std::string(to_string(test.param.family));
                         });

TEST_P(HouseKernelsOverACache, AreRight) {
    const auto kernels = working_list(GetParam().arch, GetParam().family);
    ASSERT_GE(kernels.size(), 100U);
    for (std::size_t n = 0; n < kernels.size() && !HasFailure(); ++n) {
        const KernelConfig& kernel = kernels[n];
        ASSERT_EQ(cannot_execute(kernel), std::nullopt) << identifier(kernel);
        if (n % GetParam().step != 0) continue;
        const CachedSpec spec = fmha::test::spec_for(kernel, n / GetParam().step);
        const CachedProblem problem(spec.shape, spec.cache);
        run(kernel, problem);
        EXPECT_EQ(complaint(kernel, problem), "") << identifier(kernel) << "\n" << spec.cache.text();
    }
}

Shape shape_of(bool group) {
    Shape shape;
    shape.group = group;
    shape.seqlen_q = {37};
    shape.seqlen_k = {300};
    if (group) {
        shape.seqlen_q = {37, 0, 5};
        shape.seqlen_k = {300, 129, 0};
        shape.batch = 3;
    }
    shape.mask = {MaskType::bottom_right, -1, 0, 0};
    return shape;
}

TEST(HostCache, NoBitDependsOnWherePagesLieOrOnWhatLiesInTheOthers) {
    for (const bool group : {false, true})
        for (const KernelFamily family : {KernelFamily::fwd_pagedkv, KernelFamily::fwd_splitkv}) {
            const CachedProblem first(shape_of(group), {.splits = 3, .order = 1}),
                second(shape_of(group), {.splits = 3, .order = 6});
            const KernelConfig kernel = first.config(family, tile);
            run(kernel, first);
            run(kernel, second, 3);
            EXPECT_EQ(complaint(kernel, first), "");
            EXPECT_EQ(first.outputs(), second.outputs());
        }
}

TEST(HostCache, PagesGiveTheBitsOfSlotsAndOfKeysOneAfterAnother) {
    const CachedProblem plain(shape_of(false), {.cache = Cache::contiguous, .splits = 3}),
        slots(shape_of(false), {.cache = Cache::slots, .splits = 3}),
        pages(shape_of(false), {.cache = Cache::pages, .splits = 3});
    for (const CachedProblem* problem : {&plain, &slots, &pages})
        run(problem->config(KernelFamily::fwd_splitkv, tile), *problem);
    EXPECT_EQ(plain.outputs(), slots.outputs());
    EXPECT_EQ(complaint(plain.config(KernelFamily::fwd_splitkv, tile), plain), "");
    EXPECT_EQ(complaint(pages.config(KernelFamily::fwd_splitkv, tile), pages), "");
}

TEST(HostCache, AnyNumberOfSplitsIsRight) {
    for (const std::int64_t splits : {1, 2, 3, 4, 7, 31, 128})
        for (const Cache cache : {Cache::pages, Cache::gappy_pages, Cache::contiguous}) {
            Shape shape = shape_of(cache == Cache::gappy_pages);
            shape.sink_logit = true;
            shape.bias = splits % 2 == 0 ? BiasType::alibi : BiasType::no_bias;
            const CachedProblem problem(shape, {.cache = cache, .splits = splits});
            KernelConfig kernel = problem.config(KernelFamily::fwd_splitkv, tile);
            run(kernel, problem);
            EXPECT_EQ(complaint(kernel, problem), "") << splits << " splits";
        }
}

// It has no elements, for which there is no address.
TEST(HostCache, TakesNoBiasWhereNoSequenceHasAKey) {
    Shape shape = shape_of(false);
    shape.bias = BiasType::elementwise;
    for (const std::int64_t keys : {0, 300}) {
        shape.seqlen_k = {keys};
        const CachedProblem problem(shape, {.cache = Cache::contiguous, .splits = 3});
        SplitKvArgs args = problem.split();
        args.bias.data = nullptr;
        const auto launch = [&] { run_kernel(problem.config(KernelFamily::fwd_splitkv, tile), args); };
        if (keys == 0)
            EXPECT_NO_THROW(launch());
        else
            EXPECT_THROW(launch(), InputError);
    }
}

TEST(HostCache, RefusesWhatItCannotTake) {
    const CachedProblem problem(shape_of(false), {.splits = 3});
    const KernelConfig paged = problem.config(KernelFamily::fwd_pagedkv, tile),
                       split = problem.config(KernelFamily::fwd_splitkv, tile);
    const auto refusal = [](const KernelConfig& kernel, const Invocation& args) -> std::string {
        try {
            run_kernel(kernel, args);
        } catch (const UnsupportedInvocation& error) {
            return error.what();
        } catch (const InputError& error) {
            return error.what();
        }
        return "none";
    };
    EXPECT_EQ(refusal(paged, problem.paged()), "none");
    PagedKvArgs args = problem.paged();
    args.place.page_size = 96;
    EXPECT_THAT(refusal(paged, args), HasSubstr("page_size is 96, the kernel takes multiples of its 64"));
    args = problem.paged();
    args.place.block_table = nullptr;
    EXPECT_THAT(refusal(paged, args), HasSubstr("pages need a block_table"));
    args = problem.paged();
    args.place.is_gappy = true;
    EXPECT_THAT(refusal(paged, args), HasSubstr("is_gappy needs seqlen_k and seqstart_k (P-3)"));
    args = problem.paged();
    args.place.kv_page_indices = args.place.block_table;
    EXPECT_THAT(refusal(paged, args), HasSubstr("belong to the look-up sglang_1d of batch_prefill"));
    args = problem.paged();
    args.place.layout = KvLayout::vectorized;
    EXPECT_THAT(refusal(paged, args), HasSubstr("belongs to batch_prefill"));
    args = problem.paged();
    args.k.data = nullptr;
    EXPECT_THAT(refusal(paged, args), HasSubstr("k.data is NULL"));
    SplitKvArgs parts = problem.split();
    EXPECT_EQ(refusal(split, parts), "none");
    parts.place.page_size = 0;
    EXPECT_THAT(refusal(split, parts), HasSubstr("page_size is 0, the kernel reads pages"));
    parts = problem.split();
    parts.partials.num_splits = 129;
    EXPECT_THAT(refusal(split, parts), HasSubstr("num_splits is 129, the kernel takes 1 to 128 (S-7)"));
    parts = problem.split();
    parts.partials.o_acc.data = nullptr;
    EXPECT_THAT(refusal(split, parts), HasSubstr("o_acc.data is NULL"));
    KernelConfig silent = split;
    silent.signature.has_lse = false;
    EXPECT_THAT(refusal(silent, problem.split()), HasSubstr("the main stage of split-KV stores an LSE"));
    KernelConfig dropping = paged;
    dropping.signature.has_dropout = true;
    EXPECT_THAT(refusal(dropping, problem.paged()), HasSubstr("has neither dropout"));
    EXPECT_THROW(run_kernel(paged, FwdArgs{}), ArgumentTypeError);
}

} // namespace
} // namespace fmha::host_target
