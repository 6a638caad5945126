// Where keys lie, by tables that a person can read.
#include "kernels/programs/pages.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <utility>

namespace fmha::kernels {
namespace {

using Place = std::pair<std::int64_t, std::int64_t>;

Place at(const Pages& pages, std::int64_t j) {
    const KeyPlace place = pages.at(j);
    return {place.page, place.slot};
}

TEST(Pages, WithoutPagesAnEntryIsItsOwnSlotOrTheOneOfTheIndex) {
    KvPlace place;
    EXPECT_EQ(at(Pages::of(place, 2, 0), 7), Place(2, 7));
    EXPECT_EQ(at(Pages::of(place, 2, 30), 7), Place(2, 37)) << "packed keys";
    constexpr std::array<std::int32_t, 3> slots{9, 4, 5};
    place.cache_batch_idx = slots.data();
    EXPECT_EQ(at(Pages::of(place, 2, 0), 7), Place(5, 7));
}

TEST(Pages, OfABlockTableFollowItsRows) {
    constexpr std::array<std::int32_t, 8> table{6, 1, -1, -1, 3, 6, 0, -1};
    KvPlace place;
    place.block_table = table.data();
    place.block_table_stride = 4;
    place.page_size = 128;
    const Pages first = Pages::of(place, 0, 77), second = Pages::of(place, 1, 300);
    EXPECT_EQ(at(first, 0), Place(6, 0)) << "packed starts do not matter";
    EXPECT_EQ(at(first, 127), Place(6, 127));
    EXPECT_EQ(at(first, 128), Place(1, 0));
    EXPECT_EQ(at(second, 383), Place(0, 127));
}

TEST(Pages, OfAGappyEntryBeginInsideAPage) {
    constexpr std::array<std::int32_t, 4> table{2, 5, 7, 1};
    KvPlace place;
    place.block_table = table.data();
    place.block_table_stride = 4;
    place.page_size = 128;
    place.is_gappy = true;
    const Pages pages = Pages::of(place, 0, 130);
    EXPECT_EQ(at(pages, 0), Place(5, 2)) << "t = j + seqstart_k (P-2)";
    EXPECT_EQ(at(pages, 126), Place(7, 0));
}

TEST(Pages, OfAPageListBeginAtTheEntrysIndex) {
    constexpr std::array<std::int32_t, 3> indptr{0, 2, 5};
    constexpr std::array<std::int32_t, 5> indices{8, 3, 3, 0, 9};
    KvPlace place;
    place.kv_indptr = indptr.data();
    place.kv_page_indices = indices.data();
    place.page_size = 16;
    EXPECT_EQ(at(Pages::of(place, 0, 0), 17), Place(3, 1));
    EXPECT_EQ(at(Pages::of(place, 1, 0), 0), Place(3, 0));
    EXPECT_EQ(at(Pages::of(place, 1, 0), 47), Place(9, 15));
    place.page_size = 1;
    EXPECT_EQ(at(Pages::of(place, 1, 0), 2), Place(9, 0));
}

} // namespace
} // namespace fmha::kernels
