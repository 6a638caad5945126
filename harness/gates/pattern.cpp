#include "harness/gates/pattern.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

namespace fmha::harness {
namespace {

/// The name of an axis's rows in the sentences, and the usual mistake at their ends.
struct RowWords {
    const char *last, *tail, *without_partner, *nothing_expected, *few_partners, *many_partners;
};

constexpr RowWords words_of(Axis rows) {
    if (rows == Axis::key)
        return {"key",
                "key tail",
                "only keys that no row sees (0 expected)",
                "no row sees it: 0 expected",
                "keys that few rows see",
                "only keys that more rows see than the median (accumulation over rows)"};
    return {"query row",
            "query tail",
            "only rows without a visible key (0 and -inf expected)",
            "it sees no key: 0 and -inf expected",
            "rows that see few keys",
            "only rows that see more keys than the median (accumulation over keys)"};
}

const char* column_tail(Axis columns) {
    switch (columns) {
    case Axis::qk_channel:
        return "head dimension tail";
    case Axis::key:
        return "key tail";
    case Axis::head:
    case Axis::query:
        return "query tail";
    case Axis::v_channel:
    case Axis::none:
        break;
    }
    return "value dimension tail";
}

/// The smallest and the largest of some numbers.
struct Range {
    std::int64_t lowest = 0, highest = 0;
};

template <class Get>
Range range_of(const std::vector<WrongElement>& wrong, Get get) {
    Range range{get(wrong.front()), get(wrong.front())};
    for (const auto& w : wrong) {
        range.lowest = std::min(range.lowest, get(w));
        range.highest = std::max(range.highest, get(w));
    }
    return range;
}

template <class Get>
std::set<std::int64_t> values(const std::vector<WrongElement>& wrong, Get get) {
    std::set<std::int64_t> all;
    for (const auto& w : wrong) all.insert(get(w));
    return all;
}

/// (b, h, row, length) of every wrong row.
using Rows = std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>>;

/// Rows of every (b, h) that form whole aligned tiles of some usual height; 0 when they do not.
std::int64_t whole_tile_height(const Rows& rows) {
    // Rows of a head that is wrong as a whole say nothing about tiles.
    std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> missing;
    for (const auto& [b, h, i, seqlen] : rows) --missing.try_emplace({b, h}, seqlen).first->second;
    if (std::all_of(missing.begin(), missing.end(), [](const auto& head) { return head.second == 0; }))
        return 0;
    for (const std::int64_t height : {128, 64, 32, 16}) {
        const bool whole = std::all_of(rows.begin(), rows.end(), [&](const auto& row) {
            const auto [b, h, i, seqlen] = row;
            const std::int64_t begin = i / height * height, end = std::min(begin + height, seqlen);
            if (begin == 0 && end == seqlen) return false;
            for (std::int64_t r = begin; r < end; ++r)
                if (!rows.contains({b, h, r, seqlen})) return false;
            return true;
        });
        if (whole && !rows.empty()) return height;
    }
    return 0;
}

/// "1, 2 and 3", of many the first ones.
std::string listed(const std::set<std::int64_t>& numbers) {
    constexpr std::size_t most = 8;
    std::vector<std::int64_t> shown(
        numbers.begin(),
        std::next(numbers.begin(), static_cast<std::ptrdiff_t>(std::min(most, numbers.size()))));
    if (numbers.size() > most) return fmt::format("{} …", fmt::join(shown, ", "));
    const std::int64_t last = shown.back();
    shown.pop_back();
    return fmt::format("{} and {}", fmt::join(shown, ", "), last);
}

/// Whether so many elements are wrong that they would have met all of `places` by chance.
bool tells(const std::vector<WrongElement>& wrong, std::int64_t places) {
    constexpr std::int64_t each = 8;
    return static_cast<std::int64_t>(wrong.size()) >= each * places;
}

/// Whether elements at random places would all lie in `part` of `all` places less than once in a hundred times.
bool is_no_chance(std::size_t elements, std::int64_t part, std::int64_t all) {
    return static_cast<double>(elements) * std::log(static_cast<double>(part) / static_cast<double>(all)) <
           std::log(0.01);
}

/// A single row among many has some entry, some head and some number of keys: only its place is told.
std::string place_of(const WrongElement& one, const PatternContext& context) {
    const RowWords words = words_of(context.rows);
    const char* const why = one.partners == 0 ? words.nothing_expected
                            : one.length > 1 && one.row == one.length - 1
                                ? words.tail
                                : "a race, or the edge of a tile or of the mask";
    return fmt::format("only {} {} of entry {}, head {} ({})", words.last, one.row, one.b, one.h, why);
}

/// By entry and head.
void add_heads(const std::vector<WrongElement>& wrong, const PatternContext& context,
               std::vector<std::string>& parts) {
    const auto entries = values(wrong, [](const auto& w) { return w.b; });
    const auto heads = values(wrong, [](const auto& w) { return w.h; });
    if (context.batch > 1 && entries.size() == 1)
        parts.push_back(fmt::format("only entry {} of {} (offsets or lengths of an entry)", *entries.begin(),
                                    context.batch));
    else if (static_cast<std::int64_t>(entries.size()) < context.batch && tells(wrong, context.batch))
        parts.push_back(fmt::format("only entries {} of {} (offsets or lengths of an entry)", listed(entries),
                                    context.batch));
    if (context.heads > 1 && heads.size() == 1) {
        parts.push_back(
            fmt::format("only head {} of {} (head map or a per-head array)", *heads.begin(), context.heads));
        return;
    }
    if (context.group_size > 1) {
        const auto residues = values(wrong, [&](const auto& w) { return w.h % context.group_size; });
        if (static_cast<std::int64_t>(residues.size()) < context.group_size) {
            parts.push_back(
                fmt::format("only some heads of each group of {} (head map)", context.group_size));
            return;
        }
    }
    if (static_cast<std::int64_t>(heads.size()) < context.heads && tells(wrong, context.heads))
        parts.push_back(
            fmt::format("only heads {} of {} (head map or a per-head array)", listed(heads), context.heads));
}

/// Whether every row from the first to the last wrong one is wrong in some head.
bool without_gaps(const std::vector<WrongElement>& wrong, const Range& span) {
    return static_cast<std::int64_t>(values(wrong, [](const auto& w) { return w.row; }).size()) ==
           span.highest - span.lowest + 1;
}

/// By the place of their rows.
void add_rows(const std::vector<WrongElement>& wrong, const Rows& rows, const PatternContext& context,
              std::vector<std::string>& parts) {
    const RowWords words = words_of(context.rows);
    const auto all = [&](auto is) { return std::all_of(wrong.begin(), wrong.end(), is); };
    if (all([](const auto& w) { return w.partners == 0; })) {
        parts.emplace_back(words.without_partner);
    } else if (all([](const auto& w) { return w.row >= w.length - 1; }) &&
               !all([](const auto& w) { return w.length <= 1; })) {
        parts.push_back(fmt::format("only the last {} ({})", words.last, words.tail));
    } else if (const auto height = whole_tile_height(rows); height > 0) {
        parts.push_back(fmt::format("whole tiles of {} {} (a skipped or repeated tile, or a race)", height,
                                    many_of(context.rows)));
    } else {
        const auto span = range_of(wrong, [](const auto& w) { return w.row; });
        const auto longest = range_of(wrong, [](const auto& w) { return w.length; }).highest;
        if (span.lowest > 0 && span.highest == longest - 1)
            parts.push_back(fmt::format("only {} from {} on (mask edge, or a table that ends)",
                                        many_of(context.rows), span.lowest));
        else if (span.highest + 1 < longest / 2 + 1 && span.highest < longest - 1)
            parts.push_back(fmt::format("only {} up to {} of {} ({})", many_of(context.rows), span.highest,
                                        longest, words.few_partners));
        else if (span.highest < longest - 1 && span.highest - span.lowest > 2 && without_gaps(wrong, span))
            parts.push_back(fmt::format("only {} {} to {} of {} (mask edge)", many_of(context.rows),
                                        span.lowest, span.highest, longest));
    }
}

/// By their columns, unless they are rows only or columns of different kinds.
void add_columns(const std::vector<WrongElement>& wrong, const PatternContext& context,
                 std::vector<std::string>& parts) {
    if (context.column_axis == Axis::none) return;
    const auto column = range_of(wrong, [](const auto& w) { return w.column; });
    if (column.lowest > 0 && column.highest == context.columns - 1 &&
        is_no_chance(wrong.size(), context.columns - column.lowest, context.columns))
        parts.push_back(fmt::format("only {} from {} on ({})", many_of(context.column_axis), column.lowest,
                                    column_tail(context.column_axis)));
    else if (column.lowest >= 0 && column.lowest == column.highest && context.columns > 1)
        parts.push_back(fmt::format("only {} {}", one_of(context.column_axis), column.lowest));
}

} // namespace

std::string classify(const std::vector<WrongElement>& wrong, const PatternContext& context) {
    if (wrong.empty()) return {};
    Rows rows;
    for (const auto& w : wrong) rows.insert({w.b, w.h, w.row, w.length});
    const auto wrong_rows = static_cast<std::int64_t>(rows.size());
    std::vector<std::string> parts;
    // Where every row is wrong, an entry or a head is missing because it has no rows.
    if (wrong_rows == 1 && context.checked_rows > 1 && context.rows != Axis::head) {
        parts.push_back(place_of(wrong.front(), context));
    } else {
        if (wrong_rows < context.checked_rows) add_heads(wrong, context, parts);
        add_rows(wrong, rows, context, parts);
    }
    add_columns(wrong, context, parts);
    const auto many = static_cast<std::size_t>(std::count_if(
        wrong.begin(), wrong.end(), [&](const auto& w) { return w.partners > context.median_partners; }));
    if (context.median_partners > 0 && many == wrong.size() && is_no_chance(rows.size(), 1, 2))
        parts.emplace_back(words_of(context.rows).many_partners);

    std::string text =
        fmt::format("{} of {} checked {}", wrong_rows, context.checked_rows, many_of(context.rows));
    if (wrong_rows == context.checked_rows && parts.empty())
        return text + ": everywhere (scale, layout, or the wrong kernel)";
    // A kernel that computes the right thing less precisely is little beyond the limit, here and there.
    constexpr double little = 4.0;
    const double farthest = std::ranges::max_element(wrong, {}, &WrongElement::ratio)->ratio;
    if (parts.empty() && farthest <= little)
        return text + fmt::format(": here and there, at most {:.2g} times the limit (precision: rounding of "
                                  "P or O, or a type "
                                  "that is narrower than declared)",
                                  farthest);
    for (std::size_t p = 0; p < parts.size(); ++p) text += (p == 0 ? ": " : "; ") + parts[p];
    return text;
}

} // namespace fmha::harness
