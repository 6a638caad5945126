// Which keys a row sees, which are a split's and how many an entry has: every small problem, counted out key by key.

#include "reference/numerics/mask.hpp"
#include "reference/numerics/places.hpp"
#include "reference/visibility.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>

namespace fmha::reference {
namespace {

struct Lengths {
    std::int64_t q = 0, k = 0;
};

/// Calls `check` for every mask that differs on some problem of at most five rows and keys.
template <class Check>
void each_mask(const Check& check) {
    for (const MaskType type :
         {MaskType::no_mask, MaskType::top_left, MaskType::bottom_right, MaskType::window_generic})
        for (std::int64_t left = -1; left <= 3; ++left)
            for (std::int64_t right = -1; right <= 3; ++right)
                for (std::int64_t sink = 0; sink <= 3; ++sink) check(MaskArgs{type, left, right, sink});
}

std::string text(const MaskArgs& mask, const Lengths& lengths, std::int64_t i) {
    return "mask " + std::string(to_string(mask.type)) + " left " + std::to_string(mask.left) + " right " +
           std::to_string(mask.right) + " sink " + std::to_string(mask.sink) + " of " +
           std::to_string(lengths.q) + " rows and " + std::to_string(lengths.k) + " keys, row " +
           std::to_string(i);
}

AttentionArgs args_of(const MaskArgs& mask, const Lengths& lengths) {
    AttentionArgs args;
    args.shape = {Mode::batch, 1, 1, 1, lengths.q, lengths.k, lengths.q, 0, 8, 8};
    args.mask = mask;
    return args;
}

TEST(KeysOfARow, AreThoseThatTheMaskShows) {
    each_mask([](const MaskArgs& mask) {
        for (Lengths lengths; lengths.q <= 5; ++lengths.q)
            for (lengths.k = 0; lengths.k <= 5; ++lengths.k)
                for (std::int64_t i = 0; i < lengths.q; ++i) {
                    std::int64_t count = 0, first = -1, last = -1;
                    for (std::int64_t j = 0; j < lengths.k; ++j)
                        if (visible(mask, lengths.q, lengths.k, i, j)) {
                            ++count;
                            if (first < 0) first = j;
                            last = j;
                        }
                    ASSERT_EQ(sees_any_key(mask, lengths.q, lengths.k, i), count > 0)
                        << text(mask, lengths, i);
                    const AttentionArgs args = args_of(mask, lengths);
                    const KeyRanges keys = key_ranges(args, {0, 0, i});
                    ASSERT_EQ(keys.count(), count) << text(mask, lengths, i);
                    for (std::int64_t j = -1; j <= lengths.k; ++j)
                        ASSERT_EQ(keys.contain(j), visible(mask, lengths.q, lengths.k, i, j))
                            << text(mask, lengths, i) << ", key " << j;
                    const EndKeys ends = end_keys(args, {0, 0, i});
                    ASSERT_EQ(ends.first, first) << text(mask, lengths, i);
                    ASSERT_EQ(ends.last, last) << text(mask, lengths, i);
                }
    });
}

TEST(KeysOfASplit, AreThoseOfTheRowThatItHas) {
    const Lengths lengths{4, 5};
    each_mask([&](const MaskArgs& mask) {
        for (std::int64_t splits = 2; splits <= 7; ++splits)
            for (std::int64_t s = 0; s < splits; ++s)
                for (std::int64_t i = 0; i < lengths.q; ++i) {
                    AttentionArgs args = args_of(mask, lengths);
                    args.num_splits = splits;
                    args.split = s;
                    const KeyRanges keys = key_ranges(args, {0, 0, i});
                    std::int64_t count = 0, first = -1, last = -1;
                    for (std::int64_t j = 0; j < lengths.k; ++j) {
                        const bool has =
                            visible(mask, lengths.q, lengths.k, i, j) && in_split(splits, s, lengths.k, j);
                        ASSERT_EQ(keys.contain(j), has)
                            << text(mask, lengths, i) << ", key " << j << ", split " << s << " of " << splits;
                        if (!has) continue;
                        if (count++ == 0) first = j;
                        last = j;
                    }
                    const EndKeys ends = end_keys(args, {0, 0, i});
                    ASSERT_EQ(ends.first, first)
                        << text(mask, lengths, i) << ", split " << s << " of " << splits;
                    ASSERT_EQ(ends.last, last)
                        << text(mask, lengths, i) << ", split " << s << " of " << splits;
                    ASSERT_EQ(keys.count(), count) << text(mask, lengths, i);
                }
    });
}

// K-1, word for word.
TEST(SinkTokens, AreShownByTheRuleOfK1) {
    each_mask([](const MaskArgs& mask) {
        const bool anchored = mask.type == MaskType::top_left || mask.type == MaskType::bottom_right;
        for (Lengths lengths; lengths.q <= 5; ++lengths.q)
            for (lengths.k = 0; lengths.k <= 5; ++lengths.k) {
                const auto [y, x] = window_coordinates(mask, lengths.q, lengths.k);
                for (std::int64_t i = 0; i < lengths.q; ++i)
                    for (std::int64_t j = 0; j < lengths.k; ++j)
                        ASSERT_EQ(sees_as_sink_token(mask, lengths.q, lengths.k, i, j),
                                  anchored && j < mask.sink && j < i + x && y < lengths.q && i < lengths.k)
                            << text(mask, lengths, i) << ", key " << j;
            }
    });
}

// S-1: splits of equal width, the last ones shorter or empty.
TEST(InSplit, DealsOutKeysInOrder) {
    for (std::int64_t keys = 0; keys <= 20; ++keys)
        for (std::int64_t splits = 1; splits <= 9; ++splits) {
            std::int64_t width = 0;
            while (width * splits < keys) ++width;
            for (std::int64_t j = 0; j < keys; ++j)
                for (std::int64_t s = 0; s < splits; ++s)
                    EXPECT_EQ(in_split(splits, s, keys, j), s == j / width)
                        << keys << " keys, key " << j << ", split " << s << " of " << splits;
        }
    EXPECT_TRUE(in_split(3, 0, 0, 0)) << "a split has room for one key at least";
    EXPECT_FALSE(in_split(3, 0, 0, 1));
}

// B-4 and B-5: whole pages but the last, of which a list says how many keys it has; pages of one key have no list.
TEST(EntryInPages, HasTheKeysOfItsPages) {
    constexpr std::array<std::int32_t, 5> first_page{0, 1, 1, 4, 9}, last_keys{3, 99, 1, 4, 0};
    constexpr std::array<std::int64_t, 4> of_four{3, 0, 9, 20}, of_one{1, 0, 3, 5};
    AttentionArgs args;
    args.shape = {Mode::batch, 4, 1, 1, 2, 77, 2, 0, 8, 8};
    args.place.kv_indptr = first_page.data();
    args.place.page_size = 4;
    args.place.kv_last_page_lens = last_keys.data();
    for (std::size_t b = 0; b < of_four.size(); ++b)
        EXPECT_EQ(entry_in_cache(args, static_cast<std::int64_t>(b)).seqlen_k, of_four[b]) << b;
    args.place.page_size = 1;
    args.place.kv_last_page_lens = nullptr;
    for (std::size_t b = 0; b < of_one.size(); ++b)
        EXPECT_EQ(entry_in_cache(args, static_cast<std::int64_t>(b)).seqlen_k, of_one[b]) << b;
}

// P-5: the first key of an entry lies inside its pages, in batch mode too.
TEST(EntryInPages, BeginsWhereTheTableWithGapsSays) {
    constexpr std::array<std::int32_t, 3> first_slot{3, 8, 0};
    AttentionArgs args = args_of({}, {2, 5});
    args.lengths.seqstart_k = first_slot.data();
    EXPECT_EQ(entry_in_cache(args, 1).start_k, 0);
    args.place.is_gappy = true;
    EXPECT_EQ(entry_in_cache(args, 0).start_k, 3);
    EXPECT_EQ(entry_in_cache(args, 1).start_k, 8);
}

// E-2: an elementwise bias of −∞ hides a key; every pattern of hidden keys of a row beside rows with other patterns.
TEST(EndKeys, AreThoseThatABiasLeaves) {
    constexpr std::int64_t rows = 3, keys = 5;
    constexpr float hidden = -std::numeric_limits<float>::infinity();
    for (const MaskArgs& mask :
         {MaskArgs{}, MaskArgs{MaskType::top_left, 0, 1, 1}, MaskArgs{MaskType::bottom_right, 1, 0, 2},
          MaskArgs{MaskType::top_left, 0, 0, 2}})
        for (unsigned pattern = 0; pattern < 1U << keys; ++pattern) {
            std::array<float, rows * keys> bias{};
            const auto is_hidden = [&](std::int64_t i, std::int64_t j) {
                return (((pattern + 11U * static_cast<unsigned>(i)) >> j) & 1U) != 0;
            };
            for (std::int64_t i = 0; i < rows; ++i)
                for (std::int64_t j = 0; j < keys; ++j)
                    bias[static_cast<std::size_t>(i * keys + j)] = is_hidden(i, j) ? hidden : 1.0F;
            AttentionArgs args = args_of(mask, {rows, keys});
            args.score.bias_type = BiasType::elementwise;
            args.bias = {bias.data(), ElementType::fp32, 0, 0, keys, 1};
            for (std::int64_t i = 0; i < rows; ++i) {
                std::int64_t first = -1, last = -1;
                for (std::int64_t j = 0; j < keys; ++j)
                    if (visible(mask, rows, keys, i, j) && !is_hidden(i, j)) {
                        if (first < 0) first = j;
                        last = j;
                    }
                const EndKeys ends = end_keys(args, {0, 0, i});
                EXPECT_EQ(ends.first, first) << text(mask, {rows, keys}, i) << ", pattern " << pattern;
                EXPECT_EQ(ends.last, last) << text(mask, {rows, keys}, i) << ", pattern " << pattern;
            }
        }
}

TEST(EndKeys, AskForNoBiasBehindTheLastKey) {
    float hidden = -std::numeric_limits<float>::infinity();
    AttentionArgs args = args_of({}, {1, 1});
    args.score.bias_type = BiasType::elementwise;
    constexpr std::int64_t beyond_memory = std::int64_t{1} << 58;
    args.bias = {&hidden, ElementType::fp32, 0, 0, 0, beyond_memory};
    EXPECT_EQ(end_keys(args, {0, 0, 0}).first, -1);
}

/// Where key j of entry b lies, as page and slot.
std::pair<std::int64_t, std::int64_t> place(const AttentionArgs& args, std::int64_t start_k, std::int64_t b,
                                            std::int64_t j) {
    Entry entry;
    entry.start_k = start_k;
    const KeyPlace at = key_place(args, entry, b, j);
    return {at.page, at.slot};
}

TEST(KeyPlaces, AreThoseOfTheTables) {
    using Place = std::pair<std::int64_t, std::int64_t>;
    AttentionArgs args;
    EXPECT_EQ(place(args, 2, 1, 4), Place(1, 6)) << "one after another";
    constexpr std::array<std::int32_t, 2> slots{3, 5};
    args.place.cache_batch_idx = slots.data();
    EXPECT_EQ(place(args, 2, 1, 4), Place(5, 6)) << "in a slot of the cache (P-6)";

    constexpr std::array<std::int32_t, 6> table{50, 51, 52, 60, 61, 62};
    args.place = {};
    args.place.page_size = 4;
    args.place.block_table = table.data();
    args.place.block_table_stride = 3;
    EXPECT_EQ(place(args, 3, 1, 6), Place(61, 2)) << "in a table of pages (P-2)";
    args.place.is_gappy = true;
    EXPECT_EQ(place(args, 3, 1, 6), Place(62, 1)) << "from a slot of the first page on";

    constexpr std::array<std::int32_t, 3> first_page{0, 2, 5};
    constexpr std::array<std::int32_t, 5> pages{70, 71, 80, 81, 82};
    args.place = {};
    args.place.page_size = 4;
    args.place.kv_indptr = first_page.data();
    args.place.kv_page_indices = pages.data();
    EXPECT_EQ(place(args, 0, 1, 9), Place(82, 1)) << "in a list of pages (B-4)";
}

// B-3: keys lie as [channels in pieces][slot][piece], values as [slots in pieces][channel][piece], pieces of 16 bytes.
TEST(KeyElements, LieInPiecesWhereTheLayoutIsVectorized) {
    constexpr std::int64_t slots = 16, hdim_q = 32, hdim_v = 40, page = 2, hk = 3;
    AttentionArgs args;
    args.shape = {Mode::batch, 1, 4, 4, 1, 64, 1, 0, hdim_q, hdim_v};
    args.place.page_size = slots;
    args.place.layout = KvLayout::vectorized;
    for (const auto& [type, piece] : {std::pair{ElementType::fp16, 8}, std::pair{ElementType::fp8_ocp, 16},
                                      std::pair{ElementType::fp32, 4}}) {
        args.k = {nullptr, type, 100'000, 5'000, 1, 1};
        args.v = {nullptr, type, 200'000, 7'000, 1, 1};
        std::int64_t at = page * 100'000 + hk * 5'000;
        for (std::int64_t first = 0; first < hdim_q; first += piece)
            for (std::int64_t slot = 0; slot < slots; ++slot)
                for (std::int64_t c = first; c < std::min(first + piece, hdim_q); ++c, ++at)
                    EXPECT_EQ(key_element(args, KvSide::key, {page, slot}, hk, c), at) << slot << ", " << c;
        at = page * 200'000 + hk * 7'000;
        for (std::int64_t first = 0; first < slots; first += piece)
            for (std::int64_t c = 0; c < hdim_v; ++c)
                for (std::int64_t slot = first; slot < first + piece; ++slot, ++at)
                    EXPECT_EQ(key_element(args, KvSide::value, {page, slot}, hk, c), at) << slot << ", " << c;
    }
    args.place.layout = KvLayout::linear;
    args.k = {nullptr, ElementType::fp16, 100'000, 5'000, 40, 1};
    EXPECT_EQ(key_element(args, KvSide::key, {page, 7}, hk, 9), 200'000 + 15'000 + 7 * 40 + 9);
}

} // namespace
} // namespace fmha::reference
