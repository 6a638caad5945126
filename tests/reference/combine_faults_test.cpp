// A fault in any rule of the row form of S-4 makes it disagree with the matrix form.
#include "reference/combine.hpp"
#include "reference/row/combine_row.hpp"
#include "tests/reference/random_partials.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <ostream>
#include <span>
#include <string>
#include <vector>

namespace fmha::reference {
namespace {

using test::PartialsWish;
using test::RandomPartials;
using Logs = std::span<const double>;

constexpr double never = -std::numeric_limits<double>::infinity();

struct Fault {
    std::string name;
    PartialsWish wish;
    CombineParts parts;
};

void PrintTo(const Fault& fault, std::ostream* out) {
    *out << fault.name;
}

/// Parts with one of them replaced.
CombineParts with(auto CombineParts::*part, auto faulty) {
    CombineParts parts;
    parts.*part = faulty;
    return parts;
}

double without_rescale(const SplitTotal& total) {
    return total.maximum == never ? never : std::log(total.sum);
}
double base_two(const SplitTotal& total) {
    return total.maximum == never ? never : total.maximum + std::log2(total.sum);
}
double without_its_sink(const SplitTotal& total) {
    return total.sum <= 1.0 ? never : combined_lse(total);
}

SplitTotal sum_with(Logs lse, double sink, auto term) {
    SplitTotal total{total_of(lse, sink).maximum, 0.0};
    if (total.maximum == never) return total;
    for (std::size_t s = 0; s < lse.size(); ++s) total.sum += term(s, lse[s], total.maximum);
    total.sum += std::exp(sink - total.maximum);
    return total;
}
SplitTotal empty_split_counted(Logs lse, double sink) {
    return sum_with(lse, sink, [](std::size_t, double own, double top) {
        return own == never ? 1.0 : std::exp(own - top);
    });
}
SplitTotal last_split_left_out(Logs lse, double sink) {
    return total_of(lse.first(lse.size() - 1), sink);
}
SplitTotal first_split_twice(Logs lse, double sink) {
    return sum_with(lse, sink, [](std::size_t s, double own, double top) {
        return (s == 0 ? 2.0 : 1.0) * std::exp(own - top);
    });
}
SplitTotal powers_of_two(Logs lse, double sink) {
    return sum_with(lse, sink, [](std::size_t, double own, double top) { return std::exp2(own - top); });
}
SplitTotal without_maximum(Logs lse, double sink) {
    SplitTotal total{0.0, std::exp(sink)};
    for (const double own : lse) total.sum += std::exp(own);
    if (total.sum == 0.0) total.maximum = never;
    return total;
}
SplitTotal maximum_of_the_first(Logs lse, double sink) {
    const double top = std::max(lse.front(), sink);
    if (top == never) return total_of(lse, sink);
    SplitTotal total{top, std::exp(sink - top)};
    for (const double own : lse) total.sum += std::exp(own - top);
    return total;
}
SplitTotal sink_per_split(Logs lse, double sink) {
    return sum_with(lse, sink, [sink](std::size_t s, double own, double top) {
        return std::exp(own - top) + (s > 0 ? std::exp(sink - top) : 0.0);
    });
}
SplitTotal sink_in_the_maximum_alone(Logs lse, double sink) {
    SplitTotal total = total_of(lse, sink);
    if (sink > never) total.sum -= std::exp(sink - total.maximum);
    return total;
}

double not_divided(double lse, const SplitTotal& total) {
    return lse == never ? 0.0 : std::exp(lse - total.maximum);
}
double weight_in_base_two(double lse, const SplitTotal& total) {
    return lse == never ? 0.0 : std::exp2(lse - combined_lse(total));
}
double every_split_alike(double lse, const SplitTotal&) {
    return lse == never ? 0.0 : 1.0;
}

PartialSite at_split(const PartialSite& site, std::int64_t split) {
    return {site.b, site.h, split, site.row};
}
double splits_outermost(const SplitKvArgs& args, const PartialSite& site, std::int64_t c) {
    const std::int64_t head = site.split * args.shape.nhead_q + site.h, n = args.partials.num_splits;
    return partial_output(args, {site.b, head / n, head % n, site.row}, c);
}
double lse_splits_outermost(const SplitKvArgs& args, const PartialSite& site) {
    const std::int64_t head = site.split * args.shape.nhead_q + site.h, n = args.partials.num_splits;
    return partial_lse(args, {site.b, head / n, head % n, site.row});
}
double next_head(const SplitKvArgs& args, const PartialSite& site, std::int64_t c) {
    return partial_output(args, {site.b, (site.h + 1) % args.shape.nhead_q, site.split, site.row}, c);
}
double first_split_always(const SplitKvArgs& args, const PartialSite& site, std::int64_t c) {
    return partial_output(args, at_split(site, 0), c);
}
double lse_of_the_next_split(const SplitKvArgs& args, const PartialSite& site) {
    return partial_lse(args, at_split(site, (site.split + 1) % args.partials.num_splits));
}
double previous_channel(const SplitKvArgs& args, const PartialSite& site, std::int64_t c) {
    return partial_output(args, site, c > 0 ? c - 1 : 0);
}
double row_of_the_previous(const SplitKvArgs& args, const PartialSite& site) {
    return partial_lse(args, {site.b, site.h, site.split, std::max<std::int64_t>(0, site.row - 1)});
}
double no_sink(const SplitKvArgs&, std::int64_t) {
    return never;
}
double sink_of_the_next_head(const SplitKvArgs& args, std::int64_t h) {
    return split_sink(args, (h + 1) % args.shape.nhead_q);
}
std::int64_t every_entry_first(const SplitKvArgs&, std::int64_t) {
    return 0;
}

std::vector<Fault> faults() {
    const PartialsWish sinks{.sinks = true}, heads{.several_heads = true}, empty{.empty_splits = true};
    return {
        {"lse_without_rescale", {}, with(&CombineParts::combined, without_rescale)},
        {"lse_in_base_two", {}, with(&CombineParts::combined, base_two)},
        {"row_without_keys_loses_its_sink",
         {.sinks = true, .empty_splits = true},
         with(&CombineParts::combined, without_its_sink)},
        {"empty_split_counted", empty, with(&CombineParts::total, empty_split_counted)},
        {"last_split_left_out", {}, with(&CombineParts::total, last_split_left_out)},
        {"first_split_twice", {}, with(&CombineParts::total, first_split_twice)},
        {"total_in_powers_of_two", {}, with(&CombineParts::total, powers_of_two)},
        {"maximum_not_subtracted", {.far = true}, with(&CombineParts::total, without_maximum)},
        {"maximum_of_the_first_split", {.wide = true}, with(&CombineParts::total, maximum_of_the_first)},
        {"sink_added_per_split", sinks, with(&CombineParts::total, sink_per_split)},
        {"sink_in_the_maximum_alone", sinks, with(&CombineParts::total, sink_in_the_maximum_alone)},
        {"output_not_divided", {}, with(&CombineParts::weight, not_divided)},
        {"weights_in_powers_of_two", {}, with(&CombineParts::weight, weight_in_base_two)},
        {"every_split_alike", {}, with(&CombineParts::weight, every_split_alike)},
        {"output_split_stride_of_heads", heads, with(&CombineParts::output, splits_outermost)},
        {"lse_split_stride_of_heads", heads, with(&CombineParts::lse, lse_splits_outermost)},
        {"output_of_the_next_head", heads, with(&CombineParts::output, next_head)},
        {"output_of_the_first_split", {}, with(&CombineParts::output, first_split_always)},
        {"output_of_the_previous_channel", {}, with(&CombineParts::output, previous_channel)},
        {"lse_of_the_next_split", {}, with(&CombineParts::lse, lse_of_the_next_split)},
        {"lse_of_the_previous_row", {}, with(&CombineParts::lse, row_of_the_previous)},
        {"sink_forgotten", sinks, with(&CombineParts::sink, no_sink)},
        {"sink_of_the_next_head", sinks, with(&CombineParts::sink, sink_of_the_next_head)},
        {"entries_start_at_row_zero", {.group = true}, with(&CombineParts::first_row, every_entry_first)},
    };
}

class FaultInTheRowForm : public testing::TestWithParam<Fault> {};

TEST_P(FaultInTheRowForm, IsCaughtByTheMatrixForm) {
    int caught = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        const RandomPartials problem(seed, GetParam().wish);
        const std::vector<RowId> rows = all_rows(problem.args());
        const CombinedRows matrix = combine(problem.args(), rows);
        const CombinedRows faulty = combine_row_by_row(problem.args(), rows, {}, GetParam().parts);
        caught += oracle_disagreement(matrix, faulty) > 1.0 ? 1 : 0;
    }
    // Not every problem has the splits, heads or rows on which a fault can act.
    EXPECT_GE(caught, 4) << "of 40 problems";
    RecordProperty("caught_of_40", caught);
}

INSTANTIATE_TEST_SUITE_P(Parts, FaultInTheRowForm, testing::ValuesIn(faults()),
                         [](const auto& test) { return test.param.name; });

} // namespace
} // namespace fmha::reference
