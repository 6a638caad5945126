// A kernel reads its inputs while it writes (L-4).

#include "dispatcher/types/check_memory.hpp"

#include "dispatcher/types/overlap.hpp"
#include "tests/dispatcher/small_call.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace fmha::test {
namespace {

using testing::HasSubstr;

using small_call::batch, small_call::heads, small_call::keys, small_call::queries, small_call::width;
constexpr std::int64_t far = 1 << 20;

/// An address of fp16 elements that nobody reads, `elements` from a beginning.
void* at(std::int64_t elements) {
    return reinterpret_cast<void*>(far + 2 * elements); // NOLINT(performance-no-int-to-ptr)
}

TensorView dense(std::int64_t start, std::int64_t rows, std::int64_t columns = width) {
    return small_call::dense(at(start), rows, columns);
}

constexpr std::int64_t all_queries = batch * heads * queries * width, all_keys = batch * heads * keys * width;

template <class Args>
Args separate() {
    Args args;
    args.shape = small_call::shape();
    args.q = dense(0, queries);
    args.k = dense(all_queries, keys);
    args.v = dense(all_queries + all_keys, keys);
    if constexpr (requires { args.o; }) args.o = dense(all_queries + 2 * all_keys, queries);
    return args;
}

std::string told(const Invocation& arguments, bool lengths_readable = true) {
    return told_by([&] { check_memory(arguments, lengths_readable); });
}

TEST(Overlap, IsWhatTheAddressesOfAllElementsSay) {
    std::mt19937 random(1);
    const auto any = [&](std::int64_t low, std::int64_t high) {
        return std::uniform_int_distribution<std::int64_t>(low, high)(random);
    };
    struct Drawn {
        TensorView view;
        TensorExtents extents;
        std::set<std::int64_t> bytes;
    };
    const auto draw = [&] {
        Drawn drawn{{at(any(-20, 20)), any(0, 1) == 0 ? ElementType::fp32 : ElementType::uint8, any(-30, 30),
                     any(-12, 12), any(-6, 6), any(0, 2)},
                    {any(1, 3), any(1, 3), any(1, 3), any(1, 4)},
                    {}};
        const auto& [b, h, r, c] = drawn.extents;
        const auto size = element_bytes(drawn.view.type);
        for (std::int64_t n = 0; n < b * h * r * c; ++n)
            for (std::int64_t byte = 0; byte < size; ++byte)
                drawn.bytes.insert(reinterpret_cast<std::intptr_t>(drawn.view.data) + byte +
                                   size * drawn.view.offset(n / c / r / h, n / c / r % h, n / c % r, n % c));
        return drawn;
    };
    int shared = 0, apart = 0;
    for (int round = 0; round < 3000; ++round) {
        const Drawn a = draw(), b = draw();
        std::vector<std::int64_t> both;
        std::ranges::set_intersection(a.bytes, b.bytes, std::back_inserter(both));
        ASSERT_EQ(overlap(a.view, a.extents, b.view, b.extents), !both.empty()) << "round " << round;
        (both.empty() ? apart : shared) += 1;
    }
    EXPECT_GT(shared, 300);
    EXPECT_GT(apart, 300);
}

TEST(Overlap, IsNotClaimedWhereAddressesDoNotFit) {
    constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();
    const TensorView one{at(0), ElementType::fp32, huge, -huge, huge / 64, 1};
    EXPECT_FALSE(overlap(one, {2, 2, 2, 2}, one, {2, 2, 2, 2}));
    EXPECT_TRUE(overlap(one, {1, 1, 1, 2}, one, {1, 1, 1, 2}));
    EXPECT_FALSE(overlap(one, {1, 1, huge, huge}, one, {1, 1, huge, huge}));
    const TensorView last{reinterpret_cast<void*>(~std::uintptr_t{0}),
                          ElementType::fp32}; // NOLINT(performance-no-int-to-ptr)
    EXPECT_FALSE(overlap(last, {1, 1, 1, 1}, last, {1, 1, 1, 1}));
}

TEST(Overlap, GivesUpOnStridesThatHaveNothingToDoWithEachOther) {
    constexpr std::int64_t many = 1 << 20;
    const TensorView one{at(0), ElementType::uint8, 1000003 * 6, 999983 * 6, 999979 * 6, 6},
        other{at(1), ElementType::uint8, 1000033 * 6, 999961 * 6, 999959 * 6, 6};
    EXPECT_FALSE(overlap(one, {many, many, many, 64}, other, {many, many, many, 64})) << "of even addresses";
}

TEST(CheckMemory, RefusesStridesThatNoMemoryHas) {
    auto args = separate<FwdArgs>();
    args.k.row_stride = std::numeric_limits<std::int64_t>::max();
    EXPECT_EQ(told(args),
              "L-1: k has strides 384, 128, 9223372036854775807 and 1, which lead beyond 2^56 bytes");
    args.shape.seqlen_k = 1;
    EXPECT_EQ(told(args), "OK") << "nobody goes that way";
    args.o.batch_stride = std::numeric_limits<std::int64_t>::min();
    EXPECT_THAT(told(args), HasSubstr("L-1: o has strides -9223372036854775808, "));
}

TEST(CheckMemory, WantsElementsAtMultiplesOfTheirSize) {
    auto args = separate<FwdArgs>();
    args.q.data = static_cast<std::byte*>(at(0)) + 1;
    EXPECT_EQ(told(args), "q.data is 0x100001; elements of 2 bytes lie at multiples of 2");
    args.shape.seqlen_q = 0;
    EXPECT_EQ(told(args), "OK") << "it has none";
    args.shape.seqlen_q = queries;
    args.q.type = ElementType::fp8_ocp;
    EXPECT_EQ(told(args), "OK");
    args.lse = {at(10 * all_keys + 1), ElementType::fp32, heads * queries, queries, 1, 1};
    EXPECT_THAT(told(args), HasSubstr("lse.data is 0x1"));
}

TEST(CheckMemory, NamesWhatSharesMemory) {
    auto args = separate<FwdArgs>();
    EXPECT_EQ(told(args), "OK");
    EXPECT_EQ(told(Invocation()), "OK");
    args.o.data = args.k.data;
    EXPECT_EQ(told(args), "L-4: o shares memory with k; an output needs memory of its own");
    args.o = dense(all_queries - 1, queries); // the last element of q
    EXPECT_THAT(told(args), HasSubstr("o shares memory with q"));
    args.q.data = nullptr;
    args.o = dense(all_queries + 2 * all_keys - 1, queries);
    EXPECT_THAT(told(args), HasSubstr("o shares memory with v"));
    args = separate<FwdArgs>();
    args.lse = {args.o.data, ElementType::fp32, heads * queries, queries, 1, 1};
    EXPECT_THAT(told(args), HasSubstr("o shares memory with lse"));
    args.lse.data = args.q.data;
    EXPECT_THAT(told(args), HasSubstr("lse shares memory with q"));
    args.lse.data = nullptr;
    args.shape.seqlen_q = 0;
    args.o.data = args.k.data;
    EXPECT_EQ(told(args), "OK") << "no query, no element";
}

/// Projections leave Q, K and V of a token beside each other: [b, s, 4, h, d], whose last part is for O.
TEST(CheckMemory, TakesTensorsThatInterleave) {
    auto args = separate<FwdArgs>();
    args.shape.seqlen_q = args.shape.seqlen_k = keys;
    constexpr std::int64_t part = heads * width, row = 4 * part;
    const auto nth = [](std::int64_t start) {
        return TensorView{at(start), ElementType::fp16, keys * row, width, row, 1};
    };
    args.q = nth(0);
    args.k = nth(part);
    args.v = nth(2 * part);
    args.o = nth(3 * part);
    EXPECT_EQ(told(args), "OK");
    args.o = nth(3 * part - 1);
    EXPECT_THAT(told(args), HasSubstr("o shares memory with v"));
    args.o = nth(3 * part + 1); // of the last head the last channel is the next row's first
    EXPECT_THAT(told(args), HasSubstr("o shares memory with q"));
    args.o = nth(0);
    EXPECT_THAT(told(args), HasSubstr("o shares memory with q"));
}

TEST(CheckMemory, CountsPackedRowsWhereItMayReadThem) {
    const std::vector<std::int32_t> starts{0, 1, 6};
    auto args = separate<FwdArgs>();
    args.shape.mode = Mode::group;
    args.shape.seqlen_q = args.shape.seqlen_k = 0;
    args.lengths.seqstart_q = args.lengths.seqstart_k = starts.data();
    const auto packed = [](std::int64_t start) {
        return TensorView{at(start), ElementType::fp16, 0, width, heads * width, 1};
    };
    constexpr std::int64_t all = 6 * heads * width;
    args.q = packed(0);
    args.k = args.v = packed(all); // as a cache of one latent vector
    args.o = packed(2 * all);
    EXPECT_EQ(told(args), "OK");
    args.o = packed(2 * all - 1);
    EXPECT_THAT(told(args), HasSubstr("o shares memory with k"));
    EXPECT_EQ(told(args, false), "OK") << "that needs the lengths";
    args.o = args.q;
    EXPECT_THAT(told(args, false), HasSubstr("o shares memory with q"));
}

TEST(CheckMemory, KnowsPagesAndSlots) {
    auto args = separate<BatchPrefillArgs>();
    args.shape.batch = 1;
    args.place.page_size = keys;
    args.place.page_count = 3;
    args.place.layout = KvLayout::linear;
    args.v.data = args.k.data; // which both are read
    args.o = dense(all_queries + all_keys / batch * 3 - 1, queries);
    EXPECT_THAT(told(args), HasSubstr("o shares memory with k"));
    args.o = dense(all_queries + all_keys / batch * 3, queries);
    EXPECT_EQ(told(args), "OK");
    args.place.layout = KvLayout::vectorized;
    args.k.row_stride = args.v.row_stride = 0;
    EXPECT_EQ(told(args), "OK");
    args.o = dense(all_queries + all_keys / batch * 3 - 1, queries);
    EXPECT_THAT(told(args), HasSubstr("o shares memory with k"));
    args.place.page_count = 0;
    EXPECT_EQ(told(args), "OK") << "one page is known";

    auto split = separate<SplitKvArgs>();
    const std::int32_t slot = 0;
    split.o = dense(all_queries + all_keys / batch, queries);
    split.v.data = split.k.data;
    EXPECT_THAT(told(split), HasSubstr("o shares memory with k"));
    split.place.cache_batch_idx = &slot;
    EXPECT_EQ(told(split), "OK") << "one slot is known";
}

TEST(CheckMemory, LetsAppendChangeItsCacheInPlace) {
    auto args = separate<AppendKvArgs>();
    args.seqlen_knew = 1;
    args.k_new = args.v_new = dense(all_queries + 2 * all_keys, 1);
    EXPECT_EQ(told(args), "OK");
    args.v_new.data = args.k.data;
    EXPECT_THAT(told(args), HasSubstr("k shares memory with v_new"));
    args.seqlen_knew = 0;
    EXPECT_EQ(told(args), "OK") << "nothing is written";
    args = separate<AppendKvArgs>();
    args.seqlen_knew = 1;
    args.q = args.k_new = dense(all_queries + 2 * all_keys, 1);
    EXPECT_EQ(told(args), "OK");
    args.rope.type = Rope::interleaved;
    EXPECT_THAT(told(args), HasSubstr("q shares memory with k_new"));
    args.q.data = nullptr;
    args.v.data = args.k.data;
    EXPECT_THAT(told(args), HasSubstr("k shares memory with v;"));
}

TEST(CheckMemory, KnowsEveryGradient) {
    auto args = separate<BwdArgs>();
    std::int64_t free = 10 * all_keys;
    for (TensorView* view :
         {&args.d_o, &args.lse, &args.d, &args.dq, &args.dk, &args.dv, &args.bias, &args.dbias})
        *view = dense(free += all_keys, keys);
    args.dbias.type = args.bias.type = ElementType::fp16;
    std::vector<float> logits(heads), gradients(heads);
    args.score.sink_logit = logits.data();
    args.d_sink = gradients.data();
    EXPECT_EQ(told(args), "OK");
    const auto refused = [&](TensorView BwdArgs::*output, TensorView BwdArgs::*other, const char* sentence) {
        BwdArgs wrong = args;
        (wrong.*output).data = (wrong.*other).data;
        EXPECT_THAT(told(wrong), HasSubstr(sentence));
    };
    refused(&BwdArgs::dq, &BwdArgs::q, "dq shares memory with q;");
    refused(&BwdArgs::dk, &BwdArgs::k, "dk shares memory with k;");
    refused(&BwdArgs::dv, &BwdArgs::dk, "dk shares memory with dv;");
    refused(&BwdArgs::dbias, &BwdArgs::bias, "dbias shares memory with bias;");
    refused(&BwdArgs::d, &BwdArgs::lse, "d shares memory with lse;");
    refused(&BwdArgs::dq, &BwdArgs::d_o, "dq shares memory with d_o;");
    args.d_sink = logits.data() + 1;
    EXPECT_THAT(told(args), HasSubstr("d_sink shares memory with sink_logit;"));
}

} // namespace
} // namespace fmha::test
