// A fault in any rule of the row form of section 18 makes it disagree with the matrix form.
#include "reference/append.hpp"
#include "reference/row/append_row.hpp"
#include "tests/reference/random_append.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace fmha::reference {
namespace {

using test::AppendWish;
using test::RandomAppend;
using Pair = std::pair<std::int64_t, std::int64_t>;
using Sums = std::pair<ExactSum, ExactSum>;

struct Fault {
    std::string name;
    AppendWish wish;
    AppendParts parts;
};

void PrintTo(const Fault& fault, std::ostream* out) {
    *out << fault.name;
}

/// Parts with one of them replaced.
AppendParts with(auto AppendParts::*part, auto faulty) {
    AppendParts parts;
    parts.*part = faulty;
    return parts;
}

std::int64_t cached_of_the_first(const AppendKvArgs& args, std::int64_t) {
    return cached_keys(args, 0);
}

CachePlace one_slot_further(const AppendKvArgs& args, std::int64_t b, std::int64_t position) {
    const CachePlace at = place_of_key(args, b, position);
    return {at.slot, at.row + 1};
}
CachePlace next_logical_page(const AppendKvArgs& args, std::int64_t b, std::int64_t position) {
    const std::int64_t page = args.place.page_size, last = args.place.block_table_stride - 1;
    return place_of_key(args, b, std::min(position / page + 1, last) * page + position % page);
}
CachePlace always_the_first_page(const AppendKvArgs& args, std::int64_t b, std::int64_t position) {
    return place_of_key(args, b, position % args.place.page_size);
}
CachePlace pages_of_the_first_entry(const AppendKvArgs& args, std::int64_t, std::int64_t position) {
    return place_of_key(args, 0, position);
}
CachePlace table_row_stride_of_two(const AppendKvArgs& args, std::int64_t b, std::int64_t position) {
    AppendKvArgs wrong = args;
    wrong.place.block_table_stride = 1;
    return place_of_key(wrong, b, position);
}
CachePlace slots_not_looked_up(const AppendKvArgs& args, std::int64_t b, std::int64_t position) {
    AppendKvArgs wrong = args;
    wrong.place.cache_batch_idx = nullptr;
    return place_of_key(wrong, b, position);
}
CachePlace entry_of_the_slot(const AppendKvArgs& args, std::int64_t b, std::int64_t position) {
    const std::int32_t* const slots = args.place.cache_batch_idx;
    const std::int64_t found = std::find(slots, slots + args.shape.batch, b) - slots;
    return {found, position};
}
CachePlace as_if_contiguous(const AppendKvArgs&, std::int64_t b, std::int64_t position) {
    return {b, position};
}

std::int64_t queries_as_with_a_mask(const AppendKvArgs&, std::int64_t cached, std::int64_t i, bool) {
    return cached + i;
}
std::int64_t queries_at_one_position(const AppendKvArgs&, std::int64_t cached, std::int64_t i, bool query) {
    return query ? cached : cached + i;
}
std::int64_t keys_from_zero(const AppendKvArgs& args, std::int64_t cached, std::int64_t i, bool query) {
    return query ? rotary_position(args, cached, i, query) : i;
}
std::int64_t keys_at_one_position(const AppendKvArgs& args, std::int64_t cached, std::int64_t i, bool query) {
    return query ? rotary_position(args, cached, i, query) : cached;
}
std::int64_t position_before(const AppendKvArgs& args, std::int64_t cached, std::int64_t i, bool query) {
    return std::max<std::int64_t>(0, rotary_position(args, cached, i, query) - 1);
}

Pair other_pairs(const RopeArgs& rope, std::int64_t m) {
    RopeArgs other = rope;
    other.type = rope.type == Rope::interleaved ? Rope::half_rotated : Rope::interleaved;
    return rotary_pair(other, m);
}
Pair swapped(const RopeArgs& rope, std::int64_t m) {
    const auto [a, b] = rotary_pair(rope, m);
    return {b, a};
}
Pair half_of_a_half(const RopeArgs& rope, std::int64_t m) {
    return {m, m + rope.rotary_dim / 4};
}

Sums turned_back(double x0, double x1, double c, double s) {
    return rotated(x0, x1, c, -s);
}
Sums cosine_for_sine(double x0, double x1, double c, double s) {
    return rotated(x0, x1, s, c);
}
Sums second_from_the_rotated_first(double x0, double x1, double c, double s) {
    const auto [y0, y1] = rotated(x0, x1, c, s);
    return {y0, rotated(y0.value, x1, c, s).second};
}
Sums difference_left_out(double x0, double x1, double c, double s) {
    return {rotated(x0, 0.0, c, s).first, rotated(x0, x1, c, s).second};
}

double angle_of_the_next_pair(const TensorView& table, std::int64_t position, std::int64_t m) {
    return rotary_table(table, position, m ^ 1);
}

NewRow next_head(const AppendKvArgs& args, std::int64_t b, std::int64_t h, std::int64_t i) {
    return {b, (h + 1) % args.shape.nhead_k, i};
}
NewRow first_entry(const AppendKvArgs&, std::int64_t, std::int64_t h, std::int64_t i) {
    return {0, h, i};
}
NewRow keys_reversed(const AppendKvArgs& args, std::int64_t b, std::int64_t h, std::int64_t i) {
    return {b, h, args.seqlen_knew - 1 - i};
}

std::int64_t tail_rotated(const AppendKvArgs& args, AppendTarget target) {
    return target == AppendTarget::v ? 0 : args.rope.rotary_dim + (target == AppendTarget::k ? 2 : 0);
}
std::int64_t last_pair_forgotten(const AppendKvArgs& args, AppendTarget target) {
    return std::max<std::int64_t>(0, rotated_channels(args, target) - 2);
}
std::int64_t values_rotated(const AppendKvArgs& args, AppendTarget target) {
    return target == AppendTarget::v ? std::min<std::int64_t>(args.rope.rotary_dim, args.shape.hdim_v)
                                     : args.rope.rotary_dim;
}

/// Interleaved pairs of the tail stay within the row, those of halves do not.
std::vector<Fault> faults() {
    const AppendWish paged{.paged = true, .keys = true}, slots{.slots = true, .keys = true},
        keys{.rope = true, .keys = true}, masked{.rope = true, .queries = true, .mask = true},
        unmasked{.rope = true, .queries = true, .no_mask = true};
    return {
        {"cached_of_the_first_entry", {.keys = true}, with(&AppendParts::cached, cached_of_the_first)},
        {"one_slot_further", {.keys = true}, with(&AppendParts::place, one_slot_further)},
        {"next_logical_page", paged, with(&AppendParts::place, next_logical_page)},
        {"always_the_first_page", paged, with(&AppendParts::place, always_the_first_page)},
        {"pages_of_the_first_entry", paged, with(&AppendParts::place, pages_of_the_first_entry)},
        {"table_row_stride", paged, with(&AppendParts::place, table_row_stride_of_two)},
        {"table_not_looked_up", paged, with(&AppendParts::place, as_if_contiguous)},
        {"slots_not_looked_up", slots, with(&AppendParts::place, slots_not_looked_up)},
        {"slot_and_entry_swapped", slots, with(&AppendParts::place, entry_of_the_slot)},
        {"queries_advance_without_a_mask", unmasked, with(&AppendParts::position, queries_as_with_a_mask)},
        {"queries_stay_with_a_mask", masked, with(&AppendParts::position, queries_at_one_position)},
        {"keys_from_position_zero", keys, with(&AppendParts::position, keys_from_zero)},
        {"keys_at_one_position", keys, with(&AppendParts::position, keys_at_one_position)},
        {"position_off_by_one", keys, with(&AppendParts::position, position_before)},
        {"pairs_of_the_other_kind", keys, with(&AppendParts::pair, other_pairs)},
        {"pair_swapped", keys, with(&AppendParts::pair, swapped)},
        {"half_of_a_half", {.half_rotated = true, .keys = true}, with(&AppendParts::pair, half_of_a_half)},
        {"turned_back", keys, with(&AppendParts::rotate, turned_back)},
        {"cosine_for_sine", keys, with(&AppendParts::rotate, cosine_for_sine)},
        {"second_from_the_rotated_first", keys, with(&AppendParts::rotate, second_from_the_rotated_first)},
        {"difference_left_out", keys, with(&AppendParts::rotate, difference_left_out)},
        {"cosine_of_the_next_pair", keys, with(&AppendParts::cosine, angle_of_the_next_pair)},
        {"sine_of_the_next_pair", keys, with(&AppendParts::sine, angle_of_the_next_pair)},
        {"keys_of_the_next_head", {.keys = true}, with(&AppendParts::source, next_head)},
        {"keys_of_the_first_entry", {.keys = true}, with(&AppendParts::source, first_entry)},
        {"keys_reversed", {.keys = true}, with(&AppendParts::source, keys_reversed)},
        {"tail_rotated",
         {.interleaved = true, .tail = true, .keys = true},
         with(&AppendParts::channels, tail_rotated)},
        {"last_pair_forgotten", keys, with(&AppendParts::channels, last_pair_forgotten)},
        {"values_rotated", {.interleaved = true, .keys = true}, with(&AppendParts::channels, values_rotated)},
    };
}

class FaultInAppendingRows : public testing::TestWithParam<Fault> {};

TEST_P(FaultInAppendingRows, IsCaughtByTheMatrixForm) {
    int caught = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        const RandomAppend problem(seed, GetParam().wish);
        const AppendedRows faulty = append_row_by_row(problem.args(), GetParam().parts);
        caught += append_disagreements(append(problem.args()), faulty) > 0 ? 1 : 0;
    }
    // Not every problem has the entries, heads or pages on which a fault can act.
    EXPECT_GE(caught, 10) << "of 40 problems";
    RecordProperty("caught_of_40", caught);
}

INSTANTIATE_TEST_SUITE_P(Parts, FaultInAppendingRows, testing::ValuesIn(faults()),
                         [](const auto& test) { return test.param.name; });

} // namespace
} // namespace fmha::reference
