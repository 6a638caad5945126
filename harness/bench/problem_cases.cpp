#include "harness/bench/problem_cases.hpp"

#include "dispatcher/types/error.hpp"
#include "dispatcher/types/family_traits.hpp"
#include "harness/cases/case_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <set>

namespace fmha::harness {
namespace {

std::vector<std::string_view> split(std::string_view text, char at) {
    std::vector<std::string_view> parts;
    while (true) {
        const auto end = text.find(at);
        parts.push_back(text.substr(0, end));
        if (end == std::string_view::npos) return parts;
        text.remove_prefix(end + 1);
    }
}

ProblemSizes parse_problem(std::string_view text) {
    // Each entry of a packed batch has a length of its own.
    constexpr std::int64_t largest = std::numeric_limits<std::int32_t>::max(), most_entries = 65536;
    std::vector<std::int64_t> numbers;
    for (const std::string_view part : split(text, ',')) {
        std::int64_t value = 0;
        const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
        if (error != std::errc{} || end != part.data() + part.size() || value <= 0 || value > largest)
            throw InputError(
                fmt::format("--problems: \"{}\" in \"{}\" is no number from 1 to {}", part, text, largest));
        numbers.push_back(value);
    }
    if (numbers.front() > most_entries)
        throw InputError(fmt::format("--problems: \"{}\" has a batch of {}; allowed: 1 to {}", text,
                                     numbers.front(), most_entries));
    if (numbers.size() == 4) return {numbers[0], numbers[1], numbers[1], numbers[2], numbers[2], numbers[3]};
    if (numbers.size() == 6) return {numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5]};
    throw InputError(
        fmt::format("--problems: \"{}\" has {} numbers; allowed: 4 (batch,heads,seqlen,hdim) or 6 "
                    "(batch,nhead_q,nhead_k,seqlen_q,seqlen_k,hdim), with \";\" between problems",
                    text, numbers.size()));
}

/// A witness with other sizes.
Case sized(Case c, const ProblemSizes& sizes) {
    c.batch = sizes.batch;
    c.nhead_q = sizes.nhead_q;
    c.nhead_k = sizes.nhead_k;
    c.seqlen_q = {sizes.seqlen_q};
    c.seqlen_k = {sizes.seqlen_k};
    if (c.mode == Mode::group) {
        c.seqlen_q.assign(static_cast<std::size_t>(sizes.batch), sizes.seqlen_q);
        c.seqlen_k.assign(static_cast<std::size_t>(sizes.batch), sizes.seqlen_k);
    }
    if (traits_of(c.family).stores_keys) c.append.seqlen_knew = sizes.seqlen_q;
    // Where rows above the diagonal would see no key, upstream's scripts have the other corner, too.
    if (c.mask == MaskType::bottom_right && sizes.seqlen_q > sizes.seqlen_k) c.mask = MaskType::top_left;
    c.stride_padding = 0;
    return c;
}

} // namespace

std::vector<ProblemSizes> parse_problems(std::string_view text) {
    std::vector<ProblemSizes> problems;
    for (const std::string_view part : split(text, ';'))
        if (!part.empty()) problems.push_back(parse_problem(part));
    if (problems.empty()) throw InputError("--problems: names no problem");
    return problems;
}

std::vector<Case> problem_cases(std::span<const ListedKernel> list, std::span<const ProblemSizes> problems,
                                std::span<const std::int64_t> num_splits) {
    const std::vector<Witness> all = witnesses(list);
    std::vector<Case> cases;
    std::set<std::string> names;
    const auto add = [&](Case c) {
        Case base;
        base.family = c.family;
        c.id = print_name(fmt::format("problem/{}", to_string(c.family)), c, base, {});
        if (names.insert(c.id).second) cases.push_back(std::move(c));
    };
    for (const ProblemSizes& sizes : problems)
        for (const Witness& witness : all) {
            if (witness.of.expect != Expectation::pass || witness.of.hdim_q != sizes.hdim) continue;
            const Case c = sized(witness.of, sizes);
            if (!traits_of(c.family).splits_keys) {
                add(c);
                continue;
            }
            // The second stage runs behind the first one.
            if (c.split.stage != SplitStage::both) continue;
            for (const std::int64_t splits : num_splits) {
                Case one = c;
                one.split.num_splits = splits;
                add(std::move(one));
            }
        }
    return cases;
}

} // namespace fmha::harness
