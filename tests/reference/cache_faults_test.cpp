// A fault in where one oracle looks for keys, or in which of them it takes, makes the two disagree.
#include "reference/attention.hpp"
#include "reference/bounds.hpp"
#include "reference/row/row_oracle.hpp"
#include "tests/reference/cache_problem.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

namespace fmha::reference {
namespace {

using test::CacheKind;
using test::CacheProblem;
using test::CacheWish;
using I = std::int64_t;

struct Fault {
    std::string name;
    CacheWish wish;
    RowParts parts;
    bool split = false;
};

void PrintTo(const Fault& fault, std::ostream* out) {
    *out << fault.name;
}

RowParts with(auto RowParts::*part, auto faulty) {
    RowParts parts;
    parts.*part = faulty;
    return parts;
}

/// Stays inside the cache with every fault.
KeyPlace inside(const AttentionArgs& args, I page, I slot) {
    const I pages = args.place.page_count;
    return {(page % pages + pages) % pages, std::max<I>(slot, 0)};
}

KeyPlace next_page(const AttentionArgs& args, const Entry& entry, I b, I j) {
    const KeyPlace right = key_place(args, entry, b, j);
    return inside(args, right.page + 1, right.slot);
}
KeyPlace previous_slot(const AttentionArgs& args, const Entry& entry, I b, I j) {
    const KeyPlace right = key_place(args, entry, b, j);
    return inside(args, right.page, right.slot - 1);
}
KeyPlace page_edge_late(const AttentionArgs& args, const Entry& entry, I b, I j) {
    const KeyPlace right = key_place(args, entry, b, j);
    return right.slot == 0 && j > 0 ? key_place(args, entry, b, j - 1) : right;
}
KeyPlace row_of_the_first_entry(const AttentionArgs& args, const Entry& entry, I, I j) {
    return inside(args, key_place(args, entry, 0, j).page, key_place(args, entry, 0, j).slot);
}
KeyPlace always_the_first_page(const AttentionArgs& args, const Entry& entry, I b, I j) {
    return {key_place(args, entry, b, 0).page, key_place(args, entry, b, j).slot};
}
KeyPlace table_forgotten(const AttentionArgs& args, const Entry&, I, I j) {
    return inside(args, j / args.place.page_size, j % args.place.page_size);
}
KeyPlace short_table_rows(const AttentionArgs& args, const Entry& entry, I b, I j) {
    const I t = j + (args.place.is_gappy ? entry.start_k : 0);
    return inside(args,
                  args.place.block_table[b * (args.place.block_table_stride - 1) + t / args.place.page_size],
                  t % args.place.page_size);
}
KeyPlace start_forgotten(const AttentionArgs& args, const Entry& entry, I b, I j) {
    const KeyPlace place = key_place(args, {entry.seqlen_q, entry.seqlen_k, entry.start_q, 0}, b, j);
    return inside(args, place.page, place.slot);
}
KeyPlace start_inside_its_page_only(const AttentionArgs& args, const Entry& entry, I b, I j) {
    return start_forgotten(args, entry, b, j + entry.start_k % args.place.page_size);
}
KeyPlace packed_start_added(const AttentionArgs& args, const Entry& entry, I b, I j) {
    const I t = (j + entry.start_k) % std::max<I>(1, entry.seqlen_k);
    return key_place(args, entry, b, t);
}
KeyPlace index_forgotten(const AttentionArgs&, const Entry&, I b, I j) {
    return {b, j};
}
KeyPlace index_of_the_neighbour(const AttentionArgs& args, const Entry& entry, I b, I j) {
    return key_place(args, entry, (b + 1) % args.shape.batch, j);
}
KeyPlace list_of_the_previous(const AttentionArgs& args, const Entry& entry, I b, I j) {
    return key_place(args, entry, b > 0 ? b - 1 : 0, j);
}
KeyPlace list_from_its_start(const AttentionArgs& args, const Entry& entry, I, I j) {
    return key_place(args, entry, 0, j);
}

Entry last_page_full(const AttentionArgs& args, I b) {
    Entry entry = entry_in_cache(args, b);
    const I pages = args.place.kv_indptr[b + 1] - args.place.kv_indptr[b];
    entry.seqlen_k = pages * args.place.page_size;
    return entry;
}
Entry last_page_one_less(const AttentionArgs& args, I b) {
    Entry entry = entry_in_cache(args, b);
    entry.seqlen_k -= entry.seqlen_k > 0 ? 1 : 0;
    return entry;
}
Entry last_page_of_the_next(const AttentionArgs& args, I b) {
    Entry entry = entry_in_cache(args, b);
    if (args.place.kv_last_page_lens == nullptr || entry.seqlen_k == 0) return entry;
    entry.seqlen_k +=
        args.place.kv_last_page_lens[(b + 1) % args.shape.batch] - args.place.kv_last_page_lens[b];
    entry.seqlen_k = std::max<I>(0, entry.seqlen_k);
    return entry;
}
Entry length_of_the_next(const AttentionArgs& args, I b) {
    Entry entry = entry_in_cache(args, b);
    entry.seqlen_k = std::min(entry.seqlen_k, entry_in_cache(args, (b + 1) % args.shape.batch).seqlen_k);
    return entry;
}

I head_of_the_neighbour(const AttentionArgs& args, KvSide side, const KeyPlace& place, I hk, I c) {
    return key_element(args, side, place, (hk + 1) % args.shape.nhead_k, c);
}
I previous_channel(const AttentionArgs& args, KvSide side, const KeyPlace& place, I hk, I c) {
    return key_element(args, side, place, hk, c > 0 ? c - 1 : c);
}
I unit_of_8(const AttentionArgs& args, KvSide side, const KeyPlace& place, I hk, I c) {
    AttentionArgs other = args; // as if elements had 16 bits
    (side == KvSide::key ? other.k : other.v).type = ElementType::bf16;
    return key_element(args.k.type == ElementType::fp32 ? args : other, side, place, hk, c);
}
I layout_forgotten(const AttentionArgs& args, KvSide side, const KeyPlace& place, I hk, I c) {
    return (side == KvSide::key ? args.k : args.v).offset(place.page, hk, place.slot, c);
}
I keys_laid_out_like_values(const AttentionArgs& args, KvSide side, const KeyPlace& place, I hk, I c) {
    if (side == KvSide::value) return key_element(args, side, place, hk, c);
    const I v = 128 / element_bits(args.k.type);
    return place.page * args.k.batch_stride + hk * args.k.head_stride +
           place.slot / v * args.shape.hdim_q * v + c * v + place.slot % v;
}
I column_block_one_slot_short(const AttentionArgs& args, KvSide side, const KeyPlace& place, I hk, I c) {
    const I v = 128 / element_bits(args.k.type);
    return key_element(args, side, place, hk, c) - (side == KvSide::key ? c / v * v : 0);
}

bool edge_late(I n, I s, I sk, I j) {
    return in_split(n, s, sk, j > 0 ? j - 1 : 0);
}
bool edge_early(I n, I s, I sk, I j) {
    return in_split(n, s, sk, std::min(j + 1, sk - 1));
}
bool edge_twice(I n, I s, I sk, I j) {
    return in_split(n, s, sk, j) || (j > 0 && in_split(n, s, sk, j - 1));
}
bool width_rounded_down(I n, I s, I sk, I j) {
    const I width = std::max<I>(1, sk / n);
    return j >= s * width && (j < (s + 1) * width || s + 1 == n);
}
bool next_split(I n, I s, I sk, I j) {
    return in_split(n, (s + 1) % n, sk, j);
}
bool splits_ignored(I, I, I, I) {
    return true;
}
bool last_split_dropped(I n, I s, I sk, I j) {
    return s + 1 < n && in_split(n, s, sk, j);
}
bool dealt_in_turn(I n, I s, I, I j) {
    return j % n == s;
}

std::vector<Fault> faults() {
    const CacheWish slots{CacheKind::slots, false, {}}, table{CacheKind::table, false, {}},
        gappy{CacheKind::gappy_table, false, {}}, list{CacheKind::page_list, false, {}},
        units{CacheKind::table, true, {}}, listed_units{CacheKind::page_list, true, {}};
    const auto place = &RowParts::place;
    const auto element = &RowParts::element;
    const auto entry = &RowParts::entry;
    const auto split = &RowParts::in_split;
    return {
        {"table_next_page", table, with(place, next_page)},
        {"table_previous_slot", table, with(place, previous_slot)},
        {"table_page_edge_late", table, with(place, page_edge_late)},
        {"table_row_of_the_first_entry", table, with(place, row_of_the_first_entry)},
        {"table_always_the_first_page", table, with(place, always_the_first_page)},
        {"table_forgotten", table, with(place, table_forgotten)},
        {"table_row_stride_one_less", table, with(place, short_table_rows)},
        {"table_packed_start_added", table, with(place, packed_start_added)},
        {"table_length_of_the_next", table, with(entry, length_of_the_next)},
        {"table_length_one_less", table, with(entry, last_page_one_less)},
        {"table_head_of_the_neighbour", table, with(element, head_of_the_neighbour)},
        {"table_previous_channel", table, with(element, previous_channel)},
        {"gappy_start_forgotten", gappy, with(place, start_forgotten)},
        {"gappy_start_inside_its_page_only", gappy, with(place, start_inside_its_page_only)},
        {"gappy_page_edge_late", gappy, with(place, page_edge_late)},
        {"gappy_previous_slot", gappy, with(place, previous_slot)},
        {"slots_index_forgotten", slots, with(place, index_forgotten)},
        {"slots_index_of_the_neighbour", slots, with(place, index_of_the_neighbour)},
        {"slots_previous_slot", slots, with(place, previous_slot)},
        {"list_last_page_one_less", list, with(entry, last_page_one_less)},
        {"list_last_page_full", list, with(entry, last_page_full)},
        {"list_last_page_of_the_next", list, with(entry, last_page_of_the_next)},
        {"list_of_the_previous", list, with(place, list_of_the_previous)},
        {"list_from_its_start", list, with(place, list_from_its_start)},
        {"list_next_page", list, with(place, next_page)},
        {"list_page_edge_late", list, with(place, page_edge_late)},
        {"list_previous_slot", list, with(place, previous_slot)},
        {"list_table_forgotten", list, with(place, table_forgotten)},
        {"list_head_of_the_neighbour", listed_units, with(element, head_of_the_neighbour)},
        {"units_layout_forgotten", units, with(element, layout_forgotten)},
        {"units_of_the_wrong_size", units, with(element, unit_of_8)},
        {"units_of_keys_like_those_of_values", units, with(element, keys_laid_out_like_values)},
        {"units_column_block_one_slot_short", listed_units, with(element, column_block_one_slot_short)},
        {"units_previous_channel", units, with(element, previous_channel)},
        {"split_edge_late", table, with(split, edge_late), true},
        {"split_edge_early", slots, with(split, edge_early), true},
        {"split_edge_twice", gappy, with(split, edge_twice), true},
        {"split_width_rounded_down", table, with(split, width_rounded_down), true},
        {"split_of_the_neighbour", slots, with(split, next_split), true},
        {"split_ignored", table, with(split, splits_ignored), true},
        {"split_last_dropped", table, with(split, last_split_dropped), true},
        {"split_dealt_in_turn", table, with(split, dealt_in_turn), true},
        {"split_table_next_page", table, with(place, next_page), true},
        {"split_table_previous_slot", table, with(place, previous_slot), true},
        {"split_table_row_stride_one_less", table, with(place, short_table_rows), true},
        {"split_slots_index_forgotten", slots, with(place, index_forgotten), true},
        {"split_gappy_start_forgotten", gappy, with(place, start_forgotten), true},
        {"split_length_one_less", table, with(entry, last_page_one_less), true},
        {"split_head_of_the_neighbour", table, with(element, head_of_the_neighbour), true},
    };
}

class FaultInOneCache : public testing::TestWithParam<Fault> {};

TEST_P(FaultInOneCache, IsCaughtByTheOtherOracle) {
    int caught = 0, problems = 0;
    for (std::uint64_t seed = 1; seed <= 60 && caught < 3; ++seed) {
        CacheProblem problem(seed, GetParam().wish);
        if (!problem.possible()) continue;
        ++problems;
        AttentionArgs& args = problem.args();
        args.num_splits = GetParam().split ? 3 : 1;
        const std::vector<RowId> rows = all_rows(args);
        bool noticed = false;
        for (args.split = 0; args.split < args.num_splits; ++args.split) {
            const ForwardRows matrix = attention(args, rows);
            ASSERT_LE(oracle_disagreement(matrix, forward_row_by_row(args, rows, {})), 1.0) << problem.text();
            noticed = noticed ||
                      oracle_disagreement(matrix, forward_row_by_row(args, rows, {}, GetParam().parts)) > 1.0;
        }
        caught += noticed ? 1 : 0;
    }
    EXPECT_EQ(caught, 3) << "of " << problems << " problems";
}

INSTANTIATE_TEST_SUITE_P(Parts, FaultInOneCache, testing::ValuesIn(faults()),
                         [](const auto& test) { return test.param.name; });

} // namespace
} // namespace fmha::reference
