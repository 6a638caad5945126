// A fault in any rule of one oracle makes the two disagree.
#include "reference/bounds.hpp"
#include "reference/forward.hpp"
#include "reference/row/row_oracle.hpp"
#include "tests/reference/random_problem.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

namespace fmha::reference {
namespace {

using test::RandomProblem;
using test::Wish;

struct Fault {
    std::string name;
    Wish wish;
    RowParts parts;
};

void PrintTo(const Fault& fault, std::ostream* out) {
    *out << fault.name;
}

/// Parts with one of them replaced.
RowParts with(auto RowParts::*part, auto faulty) {
    RowParts parts;
    parts.*part = faulty;
    return parts;
}

using I = std::int64_t;

bool right_edge_late(const MaskArgs& mask, I sq, I sk, I i, I j) {
    return visible(mask, sq, sk, i, j) || (j > 0 && j < sk && visible(mask, sq, sk, i, j - 1));
}
bool right_edge_early(const MaskArgs& mask, I sq, I sk, I i, I j) {
    return visible(mask, sq, sk, i, j) && (j + 1 == sk || visible(mask, sq, sk, i, j + 1));
}
bool left_edge_early(const MaskArgs& mask, I sq, I sk, I i, I j) {
    return visible(mask, sq, sk, i, j) || visible(mask, sq, sk, i, j + 1);
}
bool anchored_top_left(const MaskArgs& mask, I sq, I sk, I i, I j) {
    MaskArgs other = mask;
    if (mask.type == MaskType::bottom_right) other.type = MaskType::top_left;
    return visible(other, sq, sk, i, j);
}
bool without_sink_tokens(const MaskArgs& mask, I sq, I sk, I i, I j) {
    MaskArgs other = mask;
    other.sink = 0;
    return visible(other, sq, sk, i, j);
}
double always_a_distance(const MaskArgs& mask, double slope, I sq, I sk, I i, I j) {
    MaskArgs other = mask;
    if (mask.left < 0 && mask.right == 0) other.left = sq;
    return alibi_bias(other, slope, sq, sk, i, j);
}
double without_shift(const MaskArgs& mask, double slope, I, I, I i, I j) {
    return alibi_bias(mask, slope, 1, 1, i, j);
}
double slope_doubled(const MaskArgs& mask, double slope, I sq, I sk, I i, I j) {
    return alibi_bias(mask, 2.0 * slope, sq, sk, i, j);
}
double row_of_the_previous(const FwdArgs& args, const Entry& entry, Decoder decoder, const RowId& row, I j) {
    return elementwise_bias(args, entry, decoder, {row.b, row.h, row.i > 0 ? row.i - 1 : 0}, j);
}
double key_of_the_previous(const FwdArgs& args, const Entry& entry, Decoder decoder, const RowId& row, I j) {
    return elementwise_bias(args, entry, decoder, row, j > 0 ? j - 1 : 0);
}
double scaled_too(const FwdArgs& args, const Entry& entry, Decoder decoder, const RowId& row, I j) {
    return 0.5 * elementwise_bias(args, entry, decoder, row, j);
}
std::uint8_t next_byte(const RandomSite& site, I heads, std::uint64_t seed, std::uint64_t offset) {
    return random_byte({site.b, site.h, site.i + 1, site.j}, heads, seed, offset);
}
std::uint8_t seed_halves_swapped(const RandomSite& site, I heads, std::uint64_t seed, std::uint64_t offset) {
    return random_byte(site, heads, seed << 32 | seed >> 32, offset);
}
std::uint8_t offset_in_32_bits(const RandomSite& site, I heads, std::uint64_t seed, std::uint64_t offset) {
    return random_byte(site, heads, seed, offset & 0xFFFFFFFFU);
}
std::uint8_t head_forgotten(const RandomSite& site, I heads, std::uint64_t seed, std::uint64_t offset) {
    return random_byte({site.b, site.h + 1, site.i, site.j}, heads, seed, offset);
}
double last_mantissa_bit_lost(ElementType type, std::uint32_t code) {
    return decode(type, element_bits(type) <= 16 && type != ElementType::e8m0 ? code & ~1U : code & ~0xFFFFU);
}
double sign_lost(ElementType type, std::uint32_t code) {
    return std::abs(decode(type, code));
}
double sink_of_the_next_head(const FwdArgs& args, I h) {
    return sink_logit(args, (h + 1) % args.shape.nhead_q);
}
double sink_twice(const FwdArgs& args, I h) {
    return sink_logit(args, h) + std::log(2.0);
}
double no_sink(const FwdArgs&, I) {
    return -std::numeric_limits<double>::infinity();
}
Entry one_key_less(const AttentionArgs& args, I b) {
    Entry entry = entry_in_cache(args, b);
    entry.seqlen_k -= entry.seqlen_k > 0 ? 1 : 0;
    return entry;
}
Entry one_key_early(const AttentionArgs& args, I b) {
    Entry entry = entry_in_cache(args, b);
    entry.start_k -= entry.start_k > 0 ? 1 : 0;
    return entry;
}

std::vector<Fault> faults() {
    const Wish mask{.mask = true}, alibi{.alibi = true}, elementwise{.elementwise = true};
    const Wish dropout{.dropout = true}, sink{.sink_logits = true};
    return {
        {"mask_right_edge_late", mask, with(&RowParts::visible, right_edge_late)},
        {"mask_right_edge_early", mask, with(&RowParts::visible, right_edge_early)},
        {"mask_left_edge_early", mask, with(&RowParts::visible, left_edge_early)},
        {"mask_anchor_forgotten", mask, with(&RowParts::visible, anchored_top_left)},
        {"sink_tokens_forgotten", mask, with(&RowParts::visible, without_sink_tokens)},
        {"alibi_causal_form_forgotten",
         {.alibi = true, .causal = true},
         with(&RowParts::alibi, always_a_distance)},
        {"alibi_shift_forgotten", alibi, with(&RowParts::alibi, without_shift)},
        {"alibi_slope_doubled", alibi, with(&RowParts::alibi, slope_doubled)},
        {"bias_row_of_the_previous", elementwise, with(&RowParts::bias, row_of_the_previous)},
        {"bias_key_of_the_previous", elementwise, with(&RowParts::bias, key_of_the_previous)},
        {"bias_scaled_too", elementwise, with(&RowParts::bias, scaled_too)},
        {"philox_next_byte", dropout, with(&RowParts::random_byte, next_byte)},
        {"philox_seed_halves_swapped", dropout, with(&RowParts::random_byte, seed_halves_swapped)},
        {"philox_offset_in_32_bits", dropout, with(&RowParts::random_byte, offset_in_32_bits)},
        {"philox_neighbouring_head", dropout, with(&RowParts::random_byte, head_forgotten)},
        {"decode_last_bit_lost", {}, with(&RowParts::decode, last_mantissa_bit_lost)},
        {"decode_sign_lost", {}, with(&RowParts::decode, sign_lost)},
        {"sink_logit_of_the_next_head", sink, with(&RowParts::sink, sink_of_the_next_head)},
        {"sink_logit_twice", sink, with(&RowParts::sink, sink_twice)},
        {"sink_logit_forgotten", sink, with(&RowParts::sink, no_sink)},
        {"length_one_key_less", {}, with(&RowParts::entry, one_key_less)},
        {"group_start_one_early", {}, with(&RowParts::entry, one_key_early)},
    };
}

class FaultInOneOracle : public testing::TestWithParam<Fault> {};

TEST_P(FaultInOneOracle, IsCaughtByTheOther) {
    int caught = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        const RandomProblem problem(seed, GetParam().wish);
        const std::vector<RowId> rows = all_rows(problem.args());
        const ForwardRows matrix = forward(problem.args(), rows);
        const ForwardRows faulty =
            forward_row_by_row(attention_of(problem.args()), rows, {}, GetParam().parts);
        caught += oracle_disagreement(matrix, faulty) > 1.0 ? 1 : 0;
    }
    // Not every problem has the rows, keys or heads on which a fault can act.
    EXPECT_GE(caught, 4) << "of 40 problems";
    RecordProperty("caught_of_40", caught);
}

INSTANTIATE_TEST_SUITE_P(Parts, FaultInOneOracle, testing::ValuesIn(faults()),
                         [](const auto& test) { return test.param.name; });

} // namespace
} // namespace fmha::reference
