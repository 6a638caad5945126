// Arguments that would lead a kernel out of its tensors or its workspace are refused, on the host, where they can be seen.

#include "dispatcher/include/fmha/fmha.h"
#include "dispatcher/include/fmha/reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace fmha::test {
namespace {

using testing::HasSubstr;

constexpr std::int64_t batch = 2, heads = 2, queries = 4, keys = 64, width = 64;

/// Memory of any tensor of these calls.
class CallArguments : public testing::Test {
  protected:
    CallArguments() {
        fmha_context_options options{};
        options.size = sizeof options;
        options.version = FMHA_ABI_VERSION;
        options.arch = "gfx950";
        EXPECT_EQ(fmha_create(&options, &context_), FMHA_OK);
    }
    ~CallArguments() override { fmha_destroy(context_); }
    CallArguments(const CallArguments&) = delete;
    CallArguments& operator=(const CallArguments&) = delete;

    /// (batch, head, row, channel), or packed (row, head, channel).
    template <class T>
    fmha_tensor tensor(std::vector<T>& memory, std::int64_t rows, std::int64_t channels = width) const {
        if (mode == FMHA_GROUP) return {memory.data(), 0, channels, heads * channels, 1};
        return {memory.data(), heads * rows * channels, rows * channels, channels, 1};
    }

    template <class Args>
    Args arguments(fmha_api api) {
        Args args{};
        args.size = sizeof args;
        args.version = FMHA_ABI_VERSION;
        args.api = api;
        args.shape.data_type = FMHA_FP16;
        args.shape.mode = mode;
        args.shape.batch = batch;
        args.shape.nhead_q = args.shape.nhead_k = heads;
        args.shape.seqlen_q = args.shape.max_seqlen_q = queries;
        args.shape.seqlen_k = args.shape.max_seqlen_k = keys;
        args.shape.hdim_q = args.shape.hdim_v = width;
        args.mask.window_left = args.mask.window_right = -1;
        args.q = tensor(q, queries);
        args.k = tensor(k, keys);
        args.v = tensor(v, keys);
        args.o = tensor(o, queries);
        if (mode == FMHA_GROUP) {
            args.lengths.seqstart_q = starts_q.data();
            args.lengths.seqstart_k = starts_k.data();
        }
        return args;
    }
    fmha_splitkv_args splits() {
        auto args = arguments<fmha_splitkv_args>(FMHA_FWD_SPLITKV);
        args.num_splits = 2;
        return args;
    }
    fmha_bwd_args gradients() {
        auto args = arguments<fmha_bwd_args>(FMHA_BWD);
        args.d_o = tensor(d_o, queries);
        args.lse = tensor(lse, queries, 1);
        args.d = tensor(d, queries, 1);
        args.dq = tensor(dq, queries);
        args.dk = tensor(dk, keys);
        args.dv = tensor(dv, keys);
        return args;
    }
    fmha_batch_prefill_args prefill() {
        mode = FMHA_GROUP;
        auto args = arguments<fmha_batch_prefill_args>(FMHA_BATCH_PREFILL);
        args.shape.seqlen_k = 32;
        args.lengths.seqstart_k = nullptr;
        args.k = args.v = {k.data(), heads * 16 * width, width, heads * width, 1};
        args.place.block_table = table.data();
        args.place.block_table_stride = 2;
        args.place.page_size = 16;
        args.place.page_count = 4;
        args.place.kv_layout = FMHA_KV_LINEAR;
        return args;
    }

    /// "OK", or the rule and the sentence.
    template <class Args>
    std::string run(const Args& args) const {
        if (fmha_run_host(context_, &args, nullptr) == FMHA_OK) return "OK";
        return fmha_last_error(context_);
    }

    template <class Args>
    static std::string of_reference(const Args& args) {
        std::array<char, 256> error{};
        const auto status =
            fmha_reference_attention("gfx950", &args, nullptr, nullptr, error.data(), error.size());
        return status == FMHA_OK ? "OK" : error.data();
    }
    static std::string of_reference(const fmha_bwd_args& args, const fmha_reference_gradients_out& out) {
        std::array<char, 256> error{};
        const auto status = fmha_reference_gradients("gfx950", &args, &out, error.data(), error.size());
        return status == FMHA_OK ? "OK" : error.data();
    }

    fmha_context* context_ = nullptr;
    std::int32_t mode = FMHA_BATCH;
    std::vector<std::uint16_t> q = halves(queries), k = halves(keys), v = halves(keys), o = halves(queries),
                               d_o = halves(queries), dq = halves(queries), dk = halves(keys),
                               dv = halves(keys);
    std::vector<float> lse = std::vector<float>(batch * heads * queries), d = lse;
    std::vector<std::int32_t> starts_q{0, 4, 8}, starts_k{0, 64, 128}, lengths{64, 64}, table{0, 1, 2, 3};

  private:
    /// Small numbers of all signs.
    static std::vector<std::uint16_t> halves(std::int64_t rows) {
        std::vector<std::uint16_t> values(static_cast<std::size_t>(batch * heads * rows * width));
        for (std::size_t n = 0; n < values.size(); ++n)
            values[n] = static_cast<std::uint16_t>((n * 7919 % 1024) | 0x3000U | (n % 3 == 0 ? 0x8000U : 0U));
        return values;
    }
};

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
    for (const std::string& told : {run(args), of_reference(args)})
        EXPECT_THAT(told, HasSubstr("entry 0 has slot 1 of the cache, which has 1 slots"));
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

/// L-2: rows of a packed batch have no batch stride; one head and one row may stand for that of an array of one batch.
TEST_F(CallArguments, ABatchStrideOfAPackedBatchSaysNothing) {
    mode = FMHA_GROUP;
    fmha_splitkv_args args = splits();
    std::vector<std::uint16_t> bias(q);
    args.score.bias_type = FMHA_ELEMENTWISE;
    args.bias = tensor(bias, queries, keys);
    EXPECT_EQ(run(args), "OK");
    const std::vector<std::uint16_t> expected = o;
    o.assign(o.size(), 0);
    for (fmha_tensor* tensor : {&args.q, &args.k, &args.v, &args.o, &args.bias})
        tensor->batch_stride = std::int64_t{1} << 40;
    EXPECT_EQ(run(args), "OK");
    EXPECT_EQ(o, expected);

    fmha_bwd_args backward = gradients();
    EXPECT_EQ(run(backward), "OK");
    const std::vector<std::uint16_t> expected_dk = dk;
    dk.assign(dk.size(), 0);
    for (fmha_tensor* tensor : {&backward.q, &backward.k, &backward.v, &backward.o, &backward.lse,
                                &backward.d_o, &backward.d, &backward.dq, &backward.dk, &backward.dv})
        tensor->batch_stride = std::int64_t{1} << 40;
    EXPECT_EQ(run(backward), "OK");
    EXPECT_EQ(dk, expected_dk);

    fmha_batch_prefill_args pages = prefill(); // where it leads from page to page
    table = {3, 2, 1, 0};
    EXPECT_EQ(run(pages), "OK");
    EXPECT_NE(o, expected);
}

/// Few query rows: the main kernel of backward stores dQ itself, and there is no third stage that would miss it.
/// Kernels of Hopper that copy by tensor maps take the tensors that a map can describe; the others take the rest.
TEST_F(CallArguments, StridesDecideWhichKernelsOfHopperAreMeant) {
    fmha_context_options options{};
    options.size = sizeof options;
    options.version = FMHA_ABI_VERSION;
    options.arch = "sm_90";
    fmha_context* hopper = nullptr;
    ASSERT_EQ(fmha_create(&options, &hopper), FMHA_OK);
    const auto pipeline = [&](auto change) {
        auto args = arguments<fmha_fwd_args>(FMHA_FWD);
        args.shape.seqlen_q = args.shape.max_seqlen_q = 200;
        change(args);
        fmha_run_info info{};
        info.size = sizeof info;
        info.version = FMHA_ABI_VERSION;
        EXPECT_EQ(fmha_plan(hopper, &args, &info), FMHA_OK) << fmha_last_error(hopper);
        const std::string name = info.kernel;
        return name.find("_ws_") != std::string::npos         ? "ws"
               : name.find("_qr_async_") != std::string::npos ? "qr_async"
                                                              : "another";
    };
    EXPECT_STREQ(pipeline([](fmha_fwd_args&) {}), "ws");
    EXPECT_STREQ(pipeline([](fmha_fwd_args& args) { args.k.head_stride = args.v.batch_stride = 0; }), "ws");
    EXPECT_STREQ(pipeline([](fmha_fwd_args& args) { args.k.row_stride = 0; }), "qr_async");
    EXPECT_STREQ(pipeline([](fmha_fwd_args& args) { args.v.head_stride = -args.v.head_stride; }), "qr_async");
    EXPECT_STREQ(pipeline([](fmha_fwd_args& args) { args.q.row_stride = -args.q.row_stride; }), "qr_async");
    EXPECT_STREQ(pipeline([](fmha_fwd_args& args) { args.k.row_stride += 1; }), "qr_async");
    fmha_destroy(hopper);
}

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
    fmha_splitkv_args split = splits();
    split.place.kv_indptr = table.data();
    EXPECT_THAT(of_reference(split), HasSubstr("kv_indptr belongs to the look-up sglang_1d"));
}

/// As `check_outputs` says; here that calls ask it, with the extents of packed keys.
TEST_F(CallArguments, AnOutputHasAPlaceForEveryElement) {
    fmha_splitkv_args split = splits();
    split.o.row_stride = 0;
    EXPECT_THAT(run(split), HasSubstr("L-4: o has row stride 0"));
    mode = FMHA_GROUP;
    fmha_bwd_args args = gradients();
    args.dv.head_stride = 0;
    EXPECT_THAT(run(args), HasSubstr("L-4: dv has head stride 0"));
    args = gradients();
    args.d_sink = lse.data();
    EXPECT_EQ(run(args), "d_sink is given, but score.sink_logit is NULL; only sink logits have gradients");
}

/// As `check_memory` says; here that calls ask it, behind the checks of lengths.
TEST_F(CallArguments, AnOutputHasMemoryOfItsOwn) {
    auto args = arguments<fmha_fwd_args>(FMHA_FWD);
    args.o.data = k.data();
    EXPECT_EQ(run(args), "L-4: o shares memory with k; an output needs memory of its own");
    fmha_splitkv_args split = splits();
    split.o.data = v.data() + batch * heads * keys * width - 1;
    EXPECT_THAT(run(split), HasSubstr("o shares memory with v;"));
    mode = FMHA_GROUP;
    fmha_bwd_args backward = gradients();
    backward.dq = backward.q;
    EXPECT_THAT(run(backward), HasSubstr("dq shares memory with q;"));
    starts_q = {0, -4, 8};
    EXPECT_THAT(run(backward), HasSubstr("seqstart_q")) << "of which the last is the number of rows";
}

/// Slopes beyond the array would be read.
TEST_F(CallArguments, SlopesLieBesideEachOther) {
    auto args = arguments<fmha_fwd_args>(FMHA_FWD);
    const std::vector<float> slopes(batch * heads, 1.0F);
    args.score.bias_type = FMHA_ALIBI;
    args.score.alibi_slopes = slopes.data();
    for (const std::int64_t stride : {std::int64_t{0}, heads}) {
        args.score.alibi_stride = stride;
        EXPECT_EQ(run(args), "OK");
        EXPECT_EQ(of_reference(args), "OK");
    }
    for (const std::int64_t stride : {heads + 1, std::int64_t{-1}, std::int64_t{1} << 50}) {
        args.score.alibi_stride = stride;
        EXPECT_THAT(run(args), HasSubstr("allowed: 0, and nhead_q = 2 for slopes of every entry"));
        EXPECT_THAT(of_reference(args), HasSubstr("allowed: 0, and nhead_q = 2 for slopes of every entry"));
    }
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

TEST_F(CallArguments, TheReferenceMissesWhatItReads) {
    auto args = arguments<fmha_fwd_args>(FMHA_FWD);
    EXPECT_EQ(of_reference(args), "OK");
    args.score.bias_type = FMHA_ELEMENTWISE;
    EXPECT_EQ(of_reference(args), "bias.data is NULL");

    fmha_bwd_args backward = gradients();
    std::vector<double> d_sink(heads), gradient(static_cast<std::size_t>(batch * heads * queries * width));
    fmha_reference_gradients_out out{};
    out.size = sizeof out;
    out.version = FMHA_ABI_VERSION;
    out.d_sink = d_sink.data();
    EXPECT_EQ(of_reference(backward, out), "OK");
    for (fmha_tensor* tensor : {&backward.q, &backward.o, &backward.lse, &backward.d_o}) {
        void* const data = std::exchange(tensor->data, nullptr);
        EXPECT_THAT(of_reference(backward, out), HasSubstr(".data is NULL"));
        tensor->data = data;
    }
    out.dq = gradient.data();
    backward.score.bias_type = FMHA_ELEMENTWISE;
    EXPECT_EQ(of_reference(backward, out), "bias.data is NULL");
    backward.shape.seqlen_k = 0; // nor an element of it
    backward.k.data = backward.v.data = nullptr;
    EXPECT_EQ(of_reference(backward, out), "OK");
}

} // namespace
} // namespace fmha::test
