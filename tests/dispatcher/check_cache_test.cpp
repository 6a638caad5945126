// Tables and lengths of caches that no kernel may see: one sentence each, and nothing is read that no key needs.
#include "dispatcher/types/check_append.hpp"
#include "dispatcher/types/check_cache.hpp"
#include "dispatcher/types/error.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace fmha {
namespace {

using testing::HasSubstr;

/// Two entries of 200 and 100 keys in pages of 128; numbers that no key needs are out of bounds.
struct Tables {
    Shape shape;
    LengthArrays lengths;
    KvPlace place;
    std::vector<std::int32_t> seqlen_k{200, 100}, table{3, 0, -1, 2, -7, 99}, seqstart_k{130, 5, 0};

    Tables() {
        shape.batch = 2;
        shape.seqlen_k = 256;
        lengths.seqlen_k = seqlen_k.data();
        place.page_size = 128;
        place.page_count = 4;
        place.block_table = table.data();
        place.block_table_stride = 3;
    }
    Tables(const Tables&) = delete;
    Tables& operator=(const Tables&) = delete;
    ~Tables() = default;
};

struct List {
    Shape shape;
    KvPlace place;
    std::vector<std::int32_t> indptr{0, 2, 2}, indices{1, 0}, last{16, 0};

    List() {
        shape.batch = 2;
        place.page_size = 16;
        place.page_count = 2;
        place.lookup = KvLookup::sglang_1d;
        place.kv_indptr = indptr.data();
        place.kv_page_indices = indices.data();
        place.kv_last_page_lens = last.data();
    }
    List(const List&) = delete;
    List& operator=(const List&) = delete;
    ~List() = default;
};

std::string sentence(const std::function<void()>& check) {
    try {
        check();
    } catch (const ProblemError& error) {
        return error.what();
    }
    return "accepted";
}

std::string of_table(const std::function<void(Tables&)>& change) {
    Tables tables;
    change(tables);
    return sentence([&] { check_cache(tables.shape, tables.lengths, tables.place); });
}

std::string of_list(const std::function<void(List&)>& change) {
    List list;
    change(list);
    return sentence([&] { check_cache(list.shape, {}, list.place); });
}

TEST(CheckCache, ReadsOfATableWhatKeysNeed) {
    EXPECT_EQ(of_table([](Tables&) {}), "accepted");
    EXPECT_THAT(of_table([](Tables& t) { t.seqlen_k[0] = 257; }),
                HasSubstr("block_table of entry 0 has page -1 at place 2; the pool has 4 pages"));
    EXPECT_THAT(of_table([](Tables& t) { t.table[3] = 4; }),
                HasSubstr("block_table of entry 1 has page 4 at place 0; the pool has 4 pages"));
    EXPECT_THAT(of_table([](Tables& t) { t.seqlen_k[1] = 385; }),
                HasSubstr("entry 1 has 385 keys from slot 0 on; a row of its block_table has room for 384"));
    EXPECT_THAT(of_table([](Tables& t) { t.seqlen_k[1] = -1; }), HasSubstr("seqlen_k of entry 1 is -1"));
    EXPECT_THAT(of_table([](Tables& t) { t.place.block_table = nullptr; }),
                HasSubstr("pages need a block_table"));
    EXPECT_EQ(of_table([](Tables& t) {
                  t.place.block_table = nullptr;
                  t.seqlen_k = {0, 0};
              }),
              "accepted");
}

/// Products of such numbers wrap around: a row of 2^57 + 3 pages of 128 keys had room for 384 and began outside.
TEST(CheckCache, RefusesTablesWhosePlacesCannotBeCounted) {
    for (const std::int64_t stride : {std::int64_t{-1}, (std::int64_t{1} << 57) + 3})
        EXPECT_THAT(of_table([&](Tables& t) { t.place.block_table_stride = stride; }),
                    HasSubstr("block_table_stride is " + std::to_string(stride)));
    for (const std::int64_t size : {std::int64_t{-128}, std::int64_t{1} << 62})
        EXPECT_THAT(of_table([&](Tables& t) { t.place.page_size = size; }),
                    HasSubstr("page_size is " + std::to_string(size)));
    AppendKvArgs args;
    args.shape.batch = 1;
    const std::int32_t cached = 0;
    args.lengths.seqlen_k = &cached;
    args.place.page_size = 128;
    args.place.block_table_stride = (std::int64_t{1} << 57) + 3;
    EXPECT_THAT(sentence([&] { check_append(args); }), HasSubstr("block_table_stride is"));
}

TEST(CheckCache, CountsGappyEntriesFromTheirStart) {
    const auto gappy = [](Tables& t) {
        t.place.is_gappy = true;
        t.lengths.seqstart_k = t.seqstart_k.data();
        t.seqlen_k[0] = 100;
        t.table[0] = -1; // before the first key
    };
    EXPECT_EQ(of_table(gappy), "accepted");
    EXPECT_THAT(of_table([&](Tables& t) {
                    gappy(t);
                    t.seqlen_k[0] = 200;
                }),
                HasSubstr("page -1 at place 2"));
    EXPECT_THAT(
        of_table([&](Tables& t) {
            gappy(t);
            t.seqlen_k[0] = 255;
        }),
        HasSubstr("entry 0 has 255 keys from slot 130 on; a row of its block_table has room for 384"));
    EXPECT_THAT(of_table([&](Tables& t) {
                    gappy(t);
                    t.lengths.seqlen_k = nullptr;
                }),
                HasSubstr("is_gappy needs the array seqlen_k"));
    EXPECT_THAT(of_table([&](Tables& t) {
                    gappy(t);
                    t.lengths.seqstart_k = nullptr;
                }),
                HasSubstr("is_gappy needs the array seqstart_k"));
}

TEST(CheckCache, TakesListsOfPagesThatDoNotDecrease) {
    EXPECT_EQ(of_list([](List&) {}), "accepted") << "an entry without pages has no last page";
    EXPECT_THAT(of_list([](List& l) { l.indptr[2] = 1; }),
                HasSubstr("kv_indptr goes from 2 to 1 at entry 1; it may not decrease"));
    EXPECT_THAT(of_list([](List& l) { l.indices[1] = 2; }),
                HasSubstr("kv_page_indices of entry 0 has page 2 at place 1; the pool has 2 pages"));
    EXPECT_THAT(of_list([](List& l) { l.last[0] = 17; }),
                HasSubstr("kv_last_page_lens of entry 0 is 17; allowed are 1 to 16"));
    EXPECT_THAT(of_list([](List& l) { l.place.kv_last_page_lens = nullptr; }),
                HasSubstr("pages of 16 keys need kv_last_page_lens"));
    EXPECT_THAT(of_list([](List& l) { l.place.kv_indptr = nullptr; }), HasSubstr("needs kv_indptr"));
    EXPECT_THAT(of_list([](List& l) { l.place.kv_page_indices = nullptr; }),
                HasSubstr("needs kv_page_indices"));
}

TEST(CheckCache, TakesSlotsThatExist) {
    Shape shape;
    shape.batch = 2;
    KvPlace place;
    std::vector<std::int32_t> slots{3, -1};
    place.cache_batch_idx = slots.data();
    const auto told = [&] { return sentence([&] { check_cache(shape, {}, place); }); };
    EXPECT_THAT(told(), HasSubstr("cache_batch_idx of entry 1 is -1; a slot is 0 or more"));
    slots[1] = 1 << 30; // how many there are is not known
    EXPECT_EQ(told(), "accepted");
    place.page_count = 5;
    slots[1] = 4;
    EXPECT_EQ(told(), "accepted");
    slots[1] = 5;
    EXPECT_THAT(told(), HasSubstr("P-6: entry 1 has slot 5 of the cache, which has 5 slots"));
    place.cache_batch_idx = nullptr;
    EXPECT_EQ(told(), "accepted");
    place.page_count = 1;
    EXPECT_THAT(told(), HasSubstr("P-6: entry 1 has slot 1 of the cache, which has 1 slots"));
    place.page_count = -1;
    EXPECT_THAT(told(), HasSubstr("which has -1 slots"));
}

/// Q-6 of the pages that hold a key, of K and of V.
TEST(CheckCache, DescalesOfPagesAreNumbersAboveZero) {
    List list;
    list.shape.nhead_k = 1;
    list.indptr = {0, 1, 1}; // page 1 alone has keys
    std::vector<float> k{0.0F, 1.0F}, v{0.0F, 1.0F};
    QuantArgs quant;
    quant.qscale = QScale::kv_blockscale;
    quant.k_descale = {k.data(), ElementType::fp32, 1, 1, 0, 0};
    quant.v_descale = {v.data(), ElementType::fp32, 1, 1, 0, 0};
    const auto told = [&] { return sentence([&] { check_cache(list.shape, {}, list.place, quant); }); };
    EXPECT_EQ(told(), "accepted");
    v[1] = 0.0F;
    EXPECT_THAT(told(), HasSubstr("v_descale is 0; a descale must be finite and above 0"));
    v[1] = 1.0F;
    k[1] = -1.0F;
    EXPECT_THAT(told(), HasSubstr("k_descale is -1; a descale must be finite and above 0"));
}

/// V-2: rows of one slot, of which the first entry has so many and gets three.
TEST(CheckAppend, EntriesShareNoRow) {
    AppendKvArgs args;
    args.shape.batch = 2;
    args.shape.seqlen_k = 16;
    args.seqlen_knew = 3;
    const std::vector<std::int32_t> slots{1, 1};
    std::vector<std::int32_t> cached{3, 6};
    args.place.cache_batch_idx = slots.data();
    args.lengths.seqlen_k = cached.data();
    const auto told = [&] { return sentence([&] { check_append(args); }); };
    EXPECT_EQ(told(), "accepted");
    for (const std::int32_t second : {1, 3, 5}) {
        cached[1] = second;
        EXPECT_THAT(told(), HasSubstr("append to the same row")) << second;
    }
    cached[1] = 0;
    EXPECT_EQ(told(), "accepted");
}

/// A packed batch has no slots.
TEST(CheckCache, CountsNoSlotsOfAPackedBatch) {
    Shape shape;
    shape.batch = 2;
    shape.mode = Mode::group;
    const std::vector<std::int32_t> starts{0, 1, 2};
    LengthArrays lengths;
    lengths.seqstart_k = starts.data();
    KvPlace place;
    place.page_count = 1;
    EXPECT_EQ(sentence([&] { check_cache(shape, lengths, place); }), "accepted");
}

} // namespace
} // namespace fmha
