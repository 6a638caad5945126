#include "tests/dispatcher/ck/members.hpp"
#include "tests/support/sentence_of.hpp"

#include <gmock/gmock.h>

#include <array>

/// The meaning of single calls of upstream's here: the places of their elements, and the refusals.
namespace fmha::ck {
namespace {

using ::testing::HasSubstr;

std::array<std::byte, 64> memory;

Surroundings around() {
    Surroundings a;
    a.arch = std::string_view("gfx950");
    a.page_count = 40;
    return a;
}

/// A call whose tensors upstream addresses as L-2 says, with strides that no two tensors share.
FwdCall plain(bool group) {
    FwdCall call{};
    auto& [t, a] = call;
    t.data_type = "bf16";
    t.is_group_mode = group;
    t.is_v_rowmajor = true;
    t.has_lse = true;
    t.bias_type = bias_enum::elementwise_bias;
    t.hdim_q = a.hdim_q = 64;
    t.hdim_v = a.hdim_v = 32;
    a.batch = 3;
    a.nhead_q = 4;
    a.nhead_k = 2;
    a.seqlen_q = a.max_seqlen_q = 10;
    a.seqlen_k = 20;
    a.q_ptr = a.k_ptr = a.v_ptr = a.bias_ptr = memory.data();
    a.o_ptr = a.lse_ptr = memory.data();
    int stride = 1000;
    each_member(a, [&](const std::string& name, auto& member) {
        if constexpr (std::is_same_v<std::remove_reference_t<decltype(member)>, index_t>)
            if (name.find("stride_") != std::string::npos) member = stride += 17;
    });
    return call;
}

TEST(CkAdapter, ElementsAreWhereUpstreamHasThem) {
    for (const bool group : {false, true})
        for (const bool row_major : {true, false}) {
            FwdCall call = plain(group);
            call.traits.is_v_rowmajor = row_major;
            const auto& a = call.args;
            const FwdArgs ours = to_ours(call, around()).args;
            const std::int64_t b = group ? 0 : 2, h = 1, i = 5, c = 3;
            EXPECT_EQ(ours.q.offset(2, h, i, c),
                      b * a.batch_stride_q + h * a.nhead_stride_q + i * a.stride_q + c);
            EXPECT_EQ(ours.k.offset(2, h, i, c),
                      b * a.batch_stride_k + h * a.nhead_stride_k + i * a.stride_k + c);
            EXPECT_EQ(ours.o.offset(2, h, i, c),
                      b * a.batch_stride_o + h * a.nhead_stride_o + i * a.stride_o + c);
            EXPECT_EQ(ours.v.offset(2, h, i, c), b * a.batch_stride_v + h * a.nhead_stride_v +
                                                     (row_major ? i * a.stride_v + c : c * a.stride_v + i));
            EXPECT_EQ(ours.lse.offset(2, h, i, 0), b * a.batch_stride_lse + h * a.nhead_stride_lse + i);
            EXPECT_EQ(ours.bias.offset(2, h, i, c),
                      b * a.batch_stride_bias + h * a.nhead_stride_bias + i * a.stride_bias + c);
        }
}

TEST(CkAdapter, ElementsOfSplitsAndPagesAreWhereUpstreamHasThem) {
    SplitKvCall call{};
    auto& [t, a] = call;
    t.data_type = "fp16";
    t.is_v_rowmajor = true;
    a.num_splits = 4;
    a.o_acc_ptr = a.lse_acc_ptr = memory.data();
    a.k_ptr = memory.data();
    a.block_table_ptr = memory.data();
    a.page_block_size = 128;
    a.stride_o_acc = 32;
    a.split_stride_o_acc = 330;
    a.nhead_stride_o_acc = 4 * 330;
    a.batch_stride_o_acc = 9000;
    a.split_stride_lse_acc = 11;
    a.nhead_stride_lse_acc = 44;
    a.batch_stride_lse_acc = 200;
    a.stride_k = 64;
    a.nhead_stride_k = 9000;
    a.batch_stride_k = 20000;
    for (const bool group : {false, true}) {
        t.is_group_mode = group;
        const Call<SplitKvArgs> ours = to_ours(call, around());
        const std::int64_t b = group ? 0 : 2, h = 3, split = 2;
        EXPECT_EQ(ours.args.partials.o_acc.offset(2, h * 4 + split, 5, 7),
                  b * 9000 + h * 1320 + split * 330 + 5 * 32 + 7);
        EXPECT_EQ(ours.args.partials.lse_acc.offset(2, h * 4 + split, 5, 0),
                  b * 200 + h * 44 + split * 11 + 5);
        EXPECT_EQ(ours.args.k.offset(6, 1, 9, 2), 6 * 20000 + 9000 + 9 * 64 + 2)
            << "pages have a stride in every mode";
        EXPECT_EQ(ours.args.place.page_count, 40);
        EXPECT_EQ(ours.problem.num_splits, 4);
        EXPECT_TRUE(ours.problem.signature.use_paged_kv);
    }
}

TEST(CkAdapter, TheProblemIsTheOneOfTheCall) {
    FwdCall call = plain(false);
    call.traits.mask_type = mask_enum::mask_bottom_right;
    call.args.mask_type = 2;
    call.args.window_size_left = -1;
    const Problem p = to_ours(call, around()).problem;
    EXPECT_EQ(p.to_string(),
              "fwd bf16 batch b3 h4/2 sq10 sk20 d64/32 arch=gfx950 mask=bottom_right bias=elementwise "
              "aligned=2 lse")
        << "one stride of this call is odd, so 16-bit elements lie at even addresses and no better";
    EXPECT_EQ(p.signature.mask, MaskClass::causal);
    validate(p);
}

template <class Theirs>
std::string refusal(const Theirs& call) {
    return fmha::test::sentence_of<UnsupportedInvocation>([&] { to_ours(call, around()); });
}

TEST(CkAdapter, ScalesOfStaticQuantisationAreOneFactor) {
    PagedKvCall call{};
    call.traits.data_type = "fp8";
    call.traits.use_pagedkv = true;
    call.traits.do_fp8_static_quant = true;
    call.args.scale_p = 240.0F;
    call.args.scale_o = 0.25F;
    const Call<PagedKvArgs> ours = to_ours(call, around());
    EXPECT_EQ(ours.args.score.scale_o, 60.0F);
    EXPECT_EQ(to_theirs(ours).args.scale_p * to_theirs(ours).args.scale_o, 60.0F);
    call.traits.do_fp8_static_quant = false;
    EXPECT_THAT(refusal(call), HasSubstr("scale_p is 240.000000: only static quantisation scales P"));
    call.args.scale_p = 1.0F;
    EXPECT_THAT(refusal(call), HasSubstr("scale_o is 0.250000: only static quantisation"));
    for (const float unset : {0.0F, 1.0F}) {
        call.args.scale_p = call.args.scale_o = unset;
        EXPECT_EQ(to_ours(call, around()).args.score.scale_o, 1.0F);
    }
}

TEST(CkAdapter, SinkLogitsOfAppendKvAreRefused) {
    AppendKvCall call{};
    call.traits.data_type = "fp16";
    EXPECT_EQ(refusal(call), "accepted");
    call.args.sink_ptr = memory.data();
    EXPECT_THAT(refusal(call), HasSubstr("sink_ptr is given: no kernel that appends reads sink logits"));
}

TEST(CkAdapter, SeedsBehindPointersAreReadOrRefused) {
    FwdCall call = plain(false);
    call.traits.has_dropout = true;
    call.args.p_drop = 0.25F;
    const std::uint64_t seed = 34534564645, offset = 99;
    call.args.drop_seed_offset = std::pair<const void*, const void*>(&seed, &offset);
    EXPECT_THAT(refusal(call), HasSubstr("drop_seed_offset is a pair of device pointers"));
    Surroundings reads = around();
    reads.read_number = [](const void* at) { return *static_cast<const std::uint64_t*>(at); };
    const DropoutArgs ours = to_ours(call, reads).args.dropout;
    EXPECT_EQ(ours.seed, seed);
    EXPECT_EQ(ours.offset, offset);
}

TEST(CkAdapter, ContradictionsAreNamed) {
    FwdCall call = plain(false);
    call.traits.hdim_q = 128;
    EXPECT_THAT(refusal(call), HasSubstr("traits.hdim_q is another value: it contradicts"));
    call = plain(false);
    call.traits.mask_type = mask_enum::mask_top_left;
    EXPECT_THAT(refusal(call), HasSubstr("traits.mask_type is another value"));
    call = plain(false);
    call.args.mask_type = 7;
    EXPECT_EQ(refusal(call),
              "mask_type is 7: allowed are the numbers of no_mask, top_left, bottom_right or window_generic");
    call = plain(false);
    call.args.lse_ptr = nullptr;
    EXPECT_EQ(refusal(call), "lse_ptr is null: has_lse asks for it");
    call = plain(false);
    call.traits.data_type = "fp8fp16";
    EXPECT_THAT(refusal(call), HasSubstr("data_type is fp8fp16: allowed are fp32, fp16"));
    BwdCall backward{};
    backward.traits.data_type = "fp16";
    backward.traits.has_dropout = true;
    backward.args.p_drop = 0.25F;
    backward.args.p_undrop = 0.5F;
    EXPECT_THAT(refusal(backward), HasSubstr("p_undrop is 0.5"));
}

TEST(CkAdapter, StridesBeyond32BitsAreNamed) {
    Call<FwdArgs> call = to_ours(plain(false), around());
    call.args.k.batch_stride = std::int64_t{1} << 31;
    try {
        to_theirs(call);
        FAIL() << "no refusal";
    } catch (const UnsupportedInvocation& error) {
        EXPECT_EQ(std::string(error.what()), "k is 2147483648: upstream counts in 32 bits");
    }
}

} // namespace
} // namespace fmha::ck
