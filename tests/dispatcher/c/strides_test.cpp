// Where the tensors of a call lie: strides that decide, that say nothing, and that are refused.

#include "tests/dispatcher/c/call_arguments.hpp"

#include <gmock/gmock.h>

namespace fmha::test {
namespace {

using testing::HasSubstr;

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
    fmha_fwd_args args = sloped();
    for (const std::int64_t stride : {std::int64_t{0}, heads}) {
        args.score.alibi_stride = stride;
        EXPECT_EQ(run(args), "OK");
    }
    for (const std::int64_t stride : {heads + 1, std::int64_t{-1}, std::int64_t{1} << 50}) {
        args.score.alibi_stride = stride;
        EXPECT_THAT(run(args), HasSubstr("allowed: 0, and nhead_q = 2 for slopes of every entry"));
    }
}

} // namespace
} // namespace fmha::test
