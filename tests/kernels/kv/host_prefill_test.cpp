// Kernels of batch prefill on the host target against the reference.
#include "dispatcher/types/error.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "kernels/targets/host/numerics.hpp"
#include "prefill_problem.hpp"
#include "tests/catalog/working_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace fmha::host_target {
namespace {

using catalog::test::working_list;
using fmha::test::PoolSpec;
using fmha::test::PrefillProblem;
using fmha::test::PrefillSpec;
using testing::HasSubstr;
using Shape = host_target::test::Shape;

constexpr Tile tile{.m0 = 32, .n0 = 64, .k0 = 32, .n1 = 32, .k1 = 32, .k0max = 64};

/// Empty when the results are right.
std::string complaint(const KernelConfig& kernel, const PrefillProblem& problem) {
    return problem.judge(numerics_of(kernel)).complaint(kernel.signature.has_lse);
}

void run(const KernelConfig& kernel, const PrefillProblem& problem, int threads = 1) {
    BatchPrefillArgs args = problem.args();
    if (!kernel.signature.has_lse) args.lse = {};
    run_kernel(kernel, args, {.threads = threads});
}

class HousePrefill : public testing::TestWithParam<std::pair<const char*, std::size_t>> {};
INSTANTIATE_TEST_SUITE_P(Architectures, HousePrefill,
                         testing::Values(std::pair{"gfx950", std::size_t{31}},
                                         std::pair{"gfx942", std::size_t{97}},
                                         std::pair{"gfx90a", std::size_t{97}}),
                         [](const auto& test) { return std::string(test.param.first); });

TEST_P(HousePrefill, KernelsAreRight) {
    const auto kernels = working_list(GetParam().first, KernelFamily::batch_prefill);
    ASSERT_GE(kernels.size(), 2000U);
    for (std::size_t n = 0; n < kernels.size() && !HasFailure(); ++n) {
        const KernelConfig& kernel = kernels[n];
        ASSERT_EQ(cannot_execute(kernel), std::nullopt) << identifier(kernel);
        if (n % GetParam().second != 0) continue;
        const PrefillSpec spec = fmha::test::prefill_spec_for(kernel, n / GetParam().second);
        const PrefillProblem problem(spec.shape, spec.pool);
        run(kernel, problem);
        EXPECT_EQ(complaint(kernel, problem), "") << identifier(kernel) << "\n" << spec.pool.text();
    }
}

Shape shape_of(DataType type = DataType::bf16) {
    Shape shape;
    shape.data_type = type;
    shape.group = true;
    shape.batch = 3;
    shape.hdim_q = 48;
    shape.hdim_v = 32;
    shape.seqlen_q = {37, 0, 5};
    shape.seqlen_k = {300, 129, 0};
    shape.mask = {MaskType::bottom_right, -1, 0, 0};
    return shape;
}

TEST(HostPrefill, EveryPageSizeLayoutAndLookUpIsRight) {
    for (const DataType type : {DataType::bf16, DataType::fp8bf16})
        for (const KvLayout layout : {KvLayout::linear, KvLayout::vectorized})
            for (const KvLookup lookup : {KvLookup::vllm_2d, KvLookup::sglang_1d})
                for (std::int64_t size = 1; size <= 2048; size *= 2) {
                    if (layout == KvLayout::vectorized && size % (type == DataType::bf16 ? 8 : 16) != 0)
                        continue;
                    const PoolSpec spec{.layout = layout,
                                        .lookup = lookup,
                                        .page_size = size,
                                        .order = static_cast<std::uint64_t>(size)};
                    const PrefillProblem problem(shape_of(type), spec);
                    const KernelConfig kernel = problem.config(tile);
                    run(kernel, problem);
                    EXPECT_EQ(complaint(kernel, problem), "") << spec.text();
                }
}

TEST(HostPrefill, NoBitDependsOnPagesLayoutOrLookUp) {
    const PrefillProblem first(shape_of(), {.page_size = 1});
    run(first.config(tile), first);
    for (const KvLayout layout : {KvLayout::linear, KvLayout::vectorized})
        for (const KvLookup lookup : {KvLookup::vllm_2d, KvLookup::sglang_1d})
            for (const std::int64_t size : {16, 64, 1024}) {
                const PrefillProblem second(
                    shape_of(), {.layout = layout, .lookup = lookup, .page_size = size, .order = 6});
                run(second.config(tile), second, 3);
                EXPECT_EQ(first.outputs(), second.outputs()) << size;
            }
}

TEST(HostPrefill, DescalesOfPagesAndTokensAreRight) {
    for (const KvLayout layout : {KvLayout::linear, KvLayout::vectorized})
        for (const KvLookup lookup : {KvLookup::vllm_2d, KvLookup::sglang_1d})
            for (const std::int64_t size : {16, 64, 256})
                for (const QScale qscale : {QScale::kv_blockscale, QScale::per_token_head})
                    for (const float cap : {0.0F, 3.0F}) {
                        if (qscale == QScale::kv_blockscale && size < tile.n0) continue;
                        Shape shape = shape_of(DataType::fp8bf16);
                        shape.soft_cap = cap;
                        const PoolSpec spec{
                            .layout = layout, .lookup = lookup, .page_size = size, .qscale = qscale};
                        const PrefillProblem problem(shape, spec);
                        const KernelConfig kernel = problem.config(tile);
                        run(kernel, problem);
                        EXPECT_EQ(complaint(kernel, problem), "") << spec.text();
                    }
}

TEST(HostPrefill, EntriesMayShareTheirFirstPage) {
    for (const KvLayout layout : {KvLayout::linear, KvLayout::vectorized})
        for (const KvLookup lookup : {KvLookup::vllm_2d, KvLookup::sglang_1d}) {
            Shape shape = shape_of();
            shape.seqlen_k = {300, 129, 64};
            const PrefillProblem problem(
                shape, {.layout = layout, .lookup = lookup, .page_size = 32, .share_first_page = true});
            const KernelConfig kernel = problem.config(tile);
            run(kernel, problem);
            EXPECT_EQ(complaint(kernel, problem), "");
        }
}

std::string refusal(const KernelConfig& kernel, const Invocation& args) {
    try {
        run_kernel(kernel, args);
    } catch (const UnsupportedInvocation& error) {
        return error.what();
    } catch (const InputError& error) {
        return error.what();
    }
    return "none";
}

// PyTorch gives a tensor without elements as NULL.
TEST(HostPrefill, TakesNoDescalesOfRowsAndPagesThatAreNot) {
    for (const QScale qscale : {QScale::kv_blockscale, QScale::per_token_head})
        for (const bool rows : {false, true})
            for (const bool keys : {false, true}) {
                Shape shape = shape_of(DataType::fp8bf16);
                shape.seqlen_q = {rows ? 3 : 0};
                shape.seqlen_k = {keys ? 70 : 0};
                shape.batch = 1;
                const PrefillProblem problem(shape, {.page_size = 64, .qscale = qscale});
                const KernelConfig kernel = problem.config(tile);
                const bool by_token = qscale == QScale::per_token_head;
                const auto without = [&](TensorView QuantArgs::*scale) {
                    BatchPrefillArgs args = problem.args();
                    (args.quant.*scale).data = nullptr;
                    if (!keys) args.place.page_count = 0;
                    return refusal(kernel, args);
                };
                const auto expected = [](bool needed, const char* name) {
                    return needed ? HasSubstr(std::string(name) + ".data is NULL") : HasSubstr("none");
                };
                EXPECT_THAT(without(&QuantArgs::q_descale), expected(rows || !by_token, "q_descale"));
                EXPECT_THAT(without(&QuantArgs::k_descale), expected(keys, "k_descale"));
                EXPECT_THAT(without(&QuantArgs::v_descale), expected(keys || by_token, "v_descale"));
            }
}

TEST(HostPrefill, RefusesWhatItCannotTake) {
    const PrefillProblem problem(shape_of(), {}),
        list(shape_of(), {.layout = KvLayout::vectorized, .lookup = KvLookup::sglang_1d});
    const KernelConfig kernel = problem.config(tile), lists = list.config(tile);
    const auto changed = [](BatchPrefillArgs args, auto change) {
        change(args);
        return args;
    };
    EXPECT_EQ(refusal(kernel, problem.args()), "none");
    EXPECT_EQ(refusal(lists, list.args()), "none");
    EXPECT_THAT(refusal(kernel, changed(problem.args(), [](auto& a) { a.place.page_size = 32; })),
                HasSubstr("page_size is 32, the kernel was built for pages of 16"));
    EXPECT_THAT(refusal(lists, problem.args()),
                HasSubstr("the layout of K and V is linear, the kernel reads vectorized"));
    EXPECT_THAT(
        refusal(kernel, changed(problem.args(), [](auto& a) { a.place.lookup = KvLookup::sglang_1d; })),
        HasSubstr("the look-up of pages is sglang_1d, the kernel reads vllm_2d"));
    EXPECT_THAT(refusal(kernel, changed(problem.args(), [](auto& a) { a.place.block_table = nullptr; })),
                HasSubstr("pages need a block_table, which is NULL"));
    EXPECT_THAT(refusal(kernel, changed(problem.args(),
                                        [](auto& a) { a.place.kv_page_indices = a.place.block_table; })),
                HasSubstr("belong to the look-up sglang_1d"));
    EXPECT_THAT(refusal(lists, changed(list.args(), [](auto& a) { a.place.kv_indptr = nullptr; })),
                HasSubstr("kv_indptr is NULL (B-4)"));
    EXPECT_THAT(refusal(lists, changed(list.args(), [](auto& a) { a.place.kv_last_page_lens = nullptr; })),
                HasSubstr("needs kv_last_page_lens, which is NULL"));
    EXPECT_THAT(refusal(lists, changed(list.args(), [](auto& a) { a.shape.hdim_q = 44; })),
                HasSubstr("hdim_q is 44, the vectorized layout takes multiples of 8 (B-3)"));
    EXPECT_THAT(refusal(kernel, changed(problem.args(), [](auto& a) { a.k.data = nullptr; })),
                HasSubstr("k.data is NULL"));
    KernelConfig odd = kernel;
    odd.signature.page_size = 24;
    EXPECT_THAT(refusal(odd, problem.args()),
                HasSubstr("page_size is 24, batch_prefill takes powers of two (B-1)"));
    KernelConfig small = kernel;
    small.signature.qscale = QScale::kv_blockscale;
    EXPECT_THAT(refusal(small, problem.args()),
                HasSubstr("page_size is 16, kv_blockscale takes multiples of the 64 keys of a tile (Q-3)"));
    EXPECT_THROW(run_kernel(kernel, PagedKvArgs{}), ArgumentTypeError);
}

} // namespace
} // namespace fmha::host_target
