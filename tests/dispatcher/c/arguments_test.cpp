// Arguments that would lead a kernel out of its tensors or its workspace are refused, on the host, where they can be seen.

#include "tests/dispatcher/c/call_arguments.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace fmha::test {
namespace {

using testing::HasSubstr;

/// A structure of another version may have members elsewhere.
TEST_F(CallArguments, HaveTheVersionOfTheLibrary) {
    for (const std::uint32_t version : {FMHA_ABI_VERSION - 1U, FMHA_ABI_VERSION + 1U}) {
        fmha_splitkv_args args = splits();
        args.version = version;
        EXPECT_THAT(run(args), HasSubstr("this library implements")) << version;
    }
}

/// T-2: packed fp4 values share bytes along the keys.
TEST_F(CallArguments, PackedKeysOfFourBitsBeginWithAByte) {
    mode = FMHA_GROUP;
    auto args = arguments<fmha_fwd_args>(FMHA_FWD);
    args.shape.data_type = FMHA_MXFP4;
    args.shape.v_layout = FMHA_V_COLUMN;
    args.quant.qscale = FMHA_MX;
    starts_k[1] = 63;
    EXPECT_THAT(run(args), HasSubstr("seqstart_k is 63; packed fp4 values of V run along the keys"));
}

TEST_F(CallArguments, AContiguousCacheHasRoomForItsKeys) {
    fmha_splitkv_args args = splits();
    args.lengths.seqlen_k = lengths.data();
    EXPECT_EQ(run(args), "OK");
    lengths[1] = 65;
    EXPECT_THAT(run(args), HasSubstr("entry 1 has 65 keys; its part of the cache has room for 64"));
    mode = FMHA_GROUP;
    args = splits();
    args.lengths.seqlen_k = lengths.data();
    EXPECT_THAT(run(args), HasSubstr("entry 1 has 65 keys; its part of the cache has room for 64"));
    lengths[1] = 3;
    EXPECT_EQ(run(args), "OK");
    starts_k[0] = -100;
    EXPECT_THAT(run(args), HasSubstr("seqstart_k begins with -100"));
}

/// Partial sums of dQ and partial results of splits lie in the workspace where the packed rows of queries do.
TEST_F(CallArguments, APackedBatchBeginsAtZero) {
    mode = FMHA_GROUP;
    EXPECT_EQ(run(splits()), "OK");
    EXPECT_EQ(run(gradients()), "OK");
    starts_q = {4, 4, 8};
    EXPECT_THAT(run(splits()), HasSubstr("seqstart_q begins with 4; the first sequence of a packed batch"));
    EXPECT_THAT(run(gradients()),
                HasSubstr("seqstart_q begins with 4; the first sequence of a packed batch"));
}

/// PyTorch gives a tensor without elements a null pointer. Rows without keys are those of R-2.
TEST_F(CallArguments, ACacheWithoutKeysNeedsNoMemory) {
    const auto zeros = [this](auto& args) {
        args.k.data = args.v.data = nullptr;
        std::ranges::fill(o, std::uint16_t{1});
        EXPECT_EQ(run(args), "OK");
        EXPECT_THAT(o, testing::Each(0));
    };
    const std::array<std::int32_t, 2> none{0, 0};
    fmha_splitkv_args slots = splits();
    slots.shape.seqlen_k = slots.shape.max_seqlen_k = 0;
    zeros(slots);
    slots.lengths.seqlen_k = none.data();
    zeros(slots);
    fmha_splitkv_args pages = slots;
    pages.place.page_size = 128;
    pages.place.block_table_stride = 1; // of a tensor [2, 0], as PyTorch says
    zeros(pages);
    auto paged = arguments<fmha_pagedkv_args>(FMHA_FWD_PAGEDKV);
    paged.place = pages.place;
    paged.lengths.seqlen_k = none.data();
    zeros(paged);
    fmha_batch_prefill_args list = prefill();
    list.place.block_table = nullptr;
    list.place.page_count = 0;
    list.lengths.seqlen_k = none.data();
    zeros(list);

    starts_k = {0, 0, 0};
    fmha_splitkv_args packed = splits();
    zeros(packed);
    starts_k = {0, 0, 1};
    EXPECT_THAT(run(packed), HasSubstr("k.data is NULL; allowed only where no sequence has a key"));
    mode = FMHA_BATCH;
    slots = splits();
    slots.k.data = nullptr;
    EXPECT_THAT(run(slots), HasSubstr("k.data is NULL"));
    lengths = {0, 1};
    paged.lengths.seqlen_k = lengths.data();
    EXPECT_THAT(run(paged), HasSubstr("pages need a block_table"));
}

/// P-6: only the caller knows how many slots the cache has.
TEST_F(CallArguments, ASlotLiesInTheCacheWhoseSlotsAreCounted) {
    fmha_splitkv_args args = splits();
    const std::vector<std::int32_t> slots{1, 0};
    args.place.cache_batch_idx = slots.data();
    EXPECT_EQ(run(args), "OK");
    args.place.page_count = 2;
    EXPECT_EQ(run(args), "OK");
    args.place.page_count = 1;
    EXPECT_THAT(run(args), HasSubstr("entry 0 has slot 1 of the cache, which has 1 slots"));
}

TEST_F(CallArguments, CumulativeLengthsAreThoseOfTheTable) {
    fmha_batch_prefill_args args = prefill();
    EXPECT_EQ(run(args), "OK");
    std::vector<std::int32_t> cumulative{0, 32, 64};
    args.lengths.cu_seqlen_k = cumulative.data();
    args.shape.seqlen_k = 1000; // says nothing beside them
    EXPECT_EQ(run(args), "OK");
    cumulative[2] = 65;
    EXPECT_THAT(run(args),
                HasSubstr("entry 1 has 33 keys from slot 0 on; a row of its block_table has room"));
    cumulative[2] = 31;
    EXPECT_THAT(run(args), HasSubstr("cu_seqlen_k of entry 1 is -1"));
}

/// Few query rows: the main kernel of backward stores dQ itself, and there is no third stage that would miss it.
TEST_F(CallArguments, DqIsMissedWhoeverStoresIt) {
    fmha_bwd_args args = gradients();
    args.dq.data = nullptr;
    EXPECT_THAT(run(args), HasSubstr("dq.data is NULL"));
    args.deterministic = 1;
    EXPECT_THAT(run(args), HasSubstr("dq.data is NULL"));
}

/// Kernels would write more rows than one tile has.
TEST_F(CallArguments, ABatchHasNoMoreRowsThanItSays) {
    fmha_bwd_args args = gradients();
    args.shape.max_seqlen_q = queries - 1;
    EXPECT_THAT(run(args), HasSubstr("max_seqlen_q is 3, but every entry of the batch has 4 rows"));
}

/// Q-6, of whole tensors and of the pages that hold a key; others may hold anything (P-5).
TEST_F(CallArguments, DescalesOfACacheAreNumbersAboveZero) {
    std::vector<float> scales(8, 1.0F);
    fmha_splitkv_args split = splits();
    split.shape.data_type = FMHA_FP8BF16;
    split.shape.hdim_q = split.shape.hdim_v = 128;
    o.resize(2 * o.size());
    split.o = tensor(o, queries, 128);
    split.quant.qscale = FMHA_PERTENSOR;
    for (fmha_tensor* tensor : {&split.quant.q_descale, &split.quant.k_descale, &split.quant.v_descale})
        *tensor = {scales.data(), 0, 0, 0, 0};
    std::vector<float> wrong{std::numeric_limits<float>::quiet_NaN()};
    split.quant.v_descale.data = wrong.data();
    EXPECT_THAT(run(split), HasSubstr("v_descale is nan; a descale must be finite and above 0"));

    fmha_batch_prefill_args args = prefill();
    args.shape.data_type = FMHA_FP8BF16;
    args.quant.qscale = FMHA_KV_BLOCKSCALE;
    args.quant.q_descale = {scales.data(), 0, 0, 0, 0};
    args.quant.k_descale = args.quant.v_descale = {scales.data(), heads, 1, 0, 0};
    args.shape.seqlen_k = 16; // pages 0 and 2
    scales[2] = -1.0F;
    EXPECT_THAT(run(args), HasSubstr("no complete plan")) << "of pages of 16 keys";
    scales[4] = 0.0F;
    EXPECT_THAT(run(args), HasSubstr("k_descale is 0; a descale must be finite and above 0"));
}

/// A list beside a table would win over it.
TEST_F(CallArguments, AListOfPagesStandsWhereItIsLookedUp) {
    fmha_batch_prefill_args args = prefill();
    args.place.kv_indptr = args.place.kv_page_indices = args.place.kv_last_page_lens = table.data();
    EXPECT_THAT(run(args), HasSubstr("kv_indptr belongs to the look-up sglang_1d"));
}

/// Above the range the soft-cap was infinite in base 2, and LSE -infinity.
TEST_F(CallArguments, ASoftCapIsFiniteInBaseTwo) {
    auto args = arguments<fmha_fwd_args>(FMHA_FWD);
    args.lse = tensor(lse, queries, 1);
    args.score.logits_soft_cap = 2.3586e38F;
    EXPECT_EQ(run(args), "OK");
    EXPECT_TRUE(std::ranges::all_of(lse, [](float value) { return std::isfinite(value); }));
    args.score.logits_soft_cap = 2.5e38F;
    EXPECT_EQ(run(args),
              "C-1: logits_soft_cap is 2.5e+38; it must be above 0 and at most 2.3586e38, which is "
              "finite in base 2, or 0 for none");
}

/// A heuristic that takes itself away is not gone before it has answered.
TEST_F(CallArguments, AHeuristicMayReplaceItself) {
    const auto once = [](const void*, void* context) {
        EXPECT_EQ(fmha_set_heuristic(static_cast<fmha_context*>(context), nullptr, nullptr), FMHA_OK);
        return "no_such_kernel";
    };
    ASSERT_EQ(fmha_set_heuristic(context_, once, context_), FMHA_OK);
    const auto args = arguments<fmha_fwd_args>(FMHA_FWD);
    EXPECT_THAT(run(args), HasSubstr("no kernel of this context is called no_such_kernel"));
    EXPECT_EQ(run(args), "OK");
}

/// What a heuristic saw and did within its own context.
struct Asked {
    fmha_context* context = nullptr;
    const fmha_fwd_args* other = nullptr; ///< a call that it makes
    fmha_status status = FMHA_OK;         ///< of that call
    std::vector<const void*> args;
};

const char* ask_and_destroy(const void* args, void* user) {
    auto& asked = *static_cast<Asked*>(user);
    asked.args.push_back(args);
    asked.status = fmha_plan(asked.context, asked.other, nullptr);
    fmha_destroy(asked.context);
    return nullptr;
}

/// A nested question asked the heuristic again without end, and a destroyed context was used.
TEST_F(CallArguments, AHeuristicMayUseItsContextAndCannotDestroyIt) {
    const auto forward = arguments<fmha_fwd_args>(FMHA_FWD);
    auto wrong = forward;
    wrong.shape.nhead_k = 3;
    Asked asked{context_, &wrong, FMHA_OK, {}};
    ASSERT_EQ(fmha_set_heuristic(context_, ask_and_destroy, &asked), FMHA_OK);
    auto split = splits();
    ASSERT_EQ(fmha_plan(context_, &split, nullptr), FMHA_OK) << fmha_last_error(context_);
    // Each of the two stages asks about the call itself, whatever call was made in between.
    EXPECT_THAT(asked.args, testing::ElementsAre(&split, &split));
    EXPECT_EQ(asked.status, FMHA_BAD_PROBLEM);
    EXPECT_STREQ(fmha_last_error(context_), "");
    EXPECT_STREQ(fmha_last_rule(context_), "");

    asked.other = &forward;
    EXPECT_EQ(run(forward), "OK");
    EXPECT_EQ(asked.status, FMHA_OK);
    EXPECT_GT(fmha_kernel_count(context_), 0);
}

} // namespace
} // namespace fmha::test
