// Where the data of a case lies in its cache, read back through nothing but the tables that the kernels get.
#include "dispatcher/tensor_maps.hpp"
#include "harness/cases/case_enums.hpp"
#include "harness/cases/case_problem.hpp"
#include "harness/data/pagedkv_tensors.hpp"
#include "harness/families/family.hpp"
#include "harness/run/execution.hpp"
#include "reference/attention.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace fmha::harness {
namespace {

Case paged_case() {
    Case c;
    c.id = "t/paged@1";
    c.family = ApiFamily::fwd_pagedkv;
    c.batch = 3;
    c.hdim_q = c.hdim_v = 32;
    c.seqlen_q = {2};
    c.seqlen_k = {300, 128, 1};
    c.length_form_k = LengthForm::seqlen;
    c.cache.page_size = 128;
    return c;
}

std::set<std::int32_t> pages_of(const PagedKvArgs& args, std::int64_t b, std::int64_t first,
                                std::int64_t end) {
    const std::int32_t* row = args.place.block_table + b * args.place.block_table_stride;
    return {row + first, row + end};
}

std::string digest(const Case& c) {
    return std::to_string(PagedKvTensors(c, Fp8Flavour::ocp).set().content_digest());
}

TEST(CacheData, EntriesHavePagesOfTheirOwnThatExist) {
    const Case c = paged_case();
    const PagedKvTensors tensors(c, Fp8Flavour::ocp);
    const PagedKvArgs args = tensors.args();
    std::set<std::int32_t> all;
    for (const auto& [b, end] : {std::pair(0, 3), std::pair(1, 1), std::pair(2, 1)})
        all.merge(pages_of(args, b, 0, end));
    EXPECT_EQ(all.size(), 5U);
    EXPECT_GE(*all.begin(), 0);
    EXPECT_LT(*all.rbegin(), args.place.page_count);
    EXPECT_GT(args.place.page_count, 5) << "the pool has pages that no entry has";
    for (const auto& [b, n] : {std::pair(0, 3), std::pair(1, 1), std::pair(2, 1)}) {
        const std::int32_t entry = args.place.block_table[b * args.place.block_table_stride + n];
        EXPECT_TRUE(entry < 0 || entry >= args.place.page_count) << "behind the pages of " << b;
    }
}

TEST(CacheData, AnotherOrderMovesPagesAndNoNumber) {
    Case c = paged_case(), other = c;
    other.cache.page_order = 1;
    const PagedKvTensors here(c, Fp8Flavour::ocp), there(other, Fp8Flavour::ocp);
    const auto a = reference::attention_of(here.args()), b = reference::attention_of(there.args());
    EXPECT_NE(pages_of(here.args(), 0, 0, 3), pages_of(there.args(), 0, 0, 3));
    for (std::int64_t j = 0; j < 300; j += 7)
        EXPECT_EQ(reference::value_of(a, 0, 1, j, 5), reference::value_of(b, 0, 1, j, 5)) << j;
    EXPECT_EQ(in_another_layout(c).cache.page_order, 1) << "repeated runs lie in other pages";
    EXPECT_NE(digest(c), digest(other)) << "the table is part of what runs";
}

TEST(CacheData, SharedPagesAreThoseOfEntryZeroWithItsNumbers) {
    Case c = paged_case();
    c.seqlen_k = {300, 290, 260};
    c.cache.shared_pages = 2;
    const PagedKvTensors tensors(c, Fp8Flavour::ocp);
    const auto args = reference::attention_of(tensors.args());
    for (const std::int64_t b : {1, 2}) {
        EXPECT_EQ(pages_of(tensors.args(), b, 0, 2), pages_of(tensors.args(), 0, 0, 2));
        EXPECT_NE(pages_of(tensors.args(), b, 2, 3), pages_of(tensors.args(), 0, 2, 3));
        EXPECT_EQ(reference::value_of(args, b, 0, 255, 3), reference::value_of(args, 0, 0, 255, 3));
        EXPECT_NE(reference::value_of(args, b, 0, 256, 3), reference::value_of(args, 0, 0, 256, 3));
    }
}

TEST(CacheData, EntriesWithGapsBeginBehindOneAnother) {
    Case c = paged_case();
    c.cache.gappy = true;
    const PagedKvTensors tensors(c, Fp8Flavour::ocp);
    const PagedKvArgs args = tensors.args();
    ASSERT_TRUE(args.place.is_gappy);
    const std::int32_t* starts = args.lengths.seqstart_k;
    EXPECT_EQ(starts[0], 0);
    EXPECT_GT(starts[1], 300);
    EXPECT_LT(starts[1], 300 + 128);
    EXPECT_GT(starts[2], starts[1] + 128);
    // Every number is that of a case without gaps.
    const Case without = paged_case();
    const PagedKvTensors plain(without, Fp8Flavour::ocp);
    const auto a = reference::attention_of(args), b = reference::attention_of(plain.args());
    for (const std::int64_t j : {0, 1, 100, 127})
        EXPECT_EQ(reference::value_of(a, 1, 1, j, 5), reference::value_of(b, 1, 1, j, 5)) << j;
    // Table entries of the pages before the first key may not be read (P-5).
    const std::int32_t before = args.place.block_table[2 * args.place.block_table_stride];
    EXPECT_TRUE(before < 0 || before >= args.place.page_count);
}

TEST(CacheData, TheProblemSaysWhichWidePagesATensorMapCanHave) {
    int mappable = 0, others = 0;
    for (const Layout layout : {Layout::bhsd, Layout::bshd})
        for (const char* tensor : {"q", "k", "v"})
            for (const std::int64_t heads : {1, 2})
                for (const std::int64_t padding : {0, 8})
                    for (const std::int64_t extra : {-64, 0, 64, 128})
                        for (const int power : {31, 32, 38, 39}) {
                            Case c = paged_case();
                            c.iperm = layout;
                            c.nhead_q = c.nhead_k = heads;
                            c.stride_padding = padding;
                            c.wide_tensor = tensor;
                            c.wide_batch_stride = (std::int64_t{1} << power) + extra;
                            const PagedKvTensors tensors(c, Fp8Flavour::ocp);
                            const bool have = tensor_maps_have(tensors.args(), VLayout::row);
                            EXPECT_EQ(to_problem(c, "sm_90").tensors_mappable, have)
                                << to_string(layout) << ' ' << tensor << ' ' << heads << ' ' << padding << ' '
                                << c.wide_batch_stride;
                            ++(have ? mappable : others);
                        }
    EXPECT_GT(mappable, 50);
    EXPECT_GT(others, 50);
}

} // namespace
} // namespace fmha::harness
