// What the reference's C interface refuses. A program of its own: sanitized, the reference takes longer to compile than all that the others need.

#include "tests/dispatcher/c/call_arguments.hpp"

#include <gmock/gmock.h>

#include <utility>

namespace fmha::test {
namespace {

using testing::HasSubstr;

TEST_F(CallArguments, TheReferenceLooksAtPlacesAndStrides) {
    fmha_splitkv_args slot = splits();
    const std::vector<std::int32_t> slots{1, 0};
    slot.place.cache_batch_idx = slots.data();
    slot.place.page_count = 1;
    EXPECT_THAT(of_reference(slot), HasSubstr("entry 0 has slot 1 of the cache, which has 1 slots"));
    fmha_splitkv_args listed = splits();
    listed.place.kv_indptr = table.data();
    EXPECT_THAT(of_reference(listed), HasSubstr("kv_indptr belongs to the look-up sglang_1d"));

    fmha_fwd_args args = sloped();
    for (const std::int64_t stride : {std::int64_t{0}, heads}) {
        args.score.alibi_stride = stride;
        EXPECT_EQ(of_reference(args), "OK");
    }
    for (const std::int64_t stride : {heads + 1, std::int64_t{-1}, std::int64_t{1} << 50}) {
        args.score.alibi_stride = stride;
        EXPECT_THAT(of_reference(args), HasSubstr("allowed: 0, and nhead_q = 2 for slopes of every entry"));
    }
}

TEST_F(CallArguments, TheReferenceNamesARuleOnce) {
    auto args = arguments<fmha_fwd_args>(FMHA_FWD);
    args.shape.nhead_k = 3;
    EXPECT_EQ(of_reference(args), "H-1: nhead_q 2 is not a multiple of nhead_k 3");
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

// An entry may have keys and no row. Its keys count, and what lies behind the keys of another entry is the caller's (W-9).
TEST_F(CallArguments, TheReferenceStoresDbiasAtThePitchOfTheLongestEntry) {
    mode = FMHA_GROUP;
    starts_q = {0, 2, 2};
    starts_k = {0, 1, 6};
    fmha_bwd_args args = gradients();
    args.shape.max_seqlen_k = 5;
    args.score.scale_s = 1.0F;
    std::vector<std::uint16_t> bias(2 * heads * 5);
    args.score.bias_type = FMHA_ELEMENTWISE;
    args.bias = {bias.data(), 0, 5, heads * 5, 1};
    fmha_reference_gradients_out out{};
    out.size = sizeof out;
    out.version = FMHA_ABI_VERSION;
    constexpr double untouched = 7.0;
    std::vector<double> dbias(2 * heads * 5 + 1, untouched);
    out.dbias = dbias.data();
    ASSERT_EQ(of_reference(args, out), "OK");
    // A softmax over one key has no gradient but the difference of dP and D.
    for (std::size_t n = 0; n < dbias.size(); ++n)
        EXPECT_EQ(dbias[n] == untouched, n % 5 != 0 || n == 2 * heads * 5) << n;
}

TEST_F(CallArguments, TheReferenceKnowsNoOtherArchitectures) {
    const auto args = arguments<fmha_fwd_args>(FMHA_FWD);
    std::array<char, 256> error{};
    for (const char* arch : {"gfx943", "GFX942", "sm90", "mi300x", ""}) {
        EXPECT_EQ(fmha_reference_attention(arch, &args, nullptr, nullptr, error.data(), error.size()),
                  FMHA_BAD_ARGUMENT)
            << arch;
        EXPECT_THAT(error.data(), HasSubstr("known: gfx1100, ")) << arch;
    }
}

} // namespace
} // namespace fmha::test
