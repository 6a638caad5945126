#include "harness/gates/pattern.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <set>
#include <tuple>

namespace fmha::harness {
namespace {

struct Extent {
    std::int64_t lowest = 0, highest = 0;
};

template <class Get>
Extent extent(const std::vector<WrongElement>& wrong, Get get) {
    Extent e{get(wrong.front()), get(wrong.front())};
    for (const auto& w : wrong) {
        e.lowest = std::min(e.lowest, get(w));
        e.highest = std::max(e.highest, get(w));
    }
    return e;
}

template <class Get>
std::set<std::int64_t> values(const std::vector<WrongElement>& wrong, Get get) {
    std::set<std::int64_t> all;
    for (const auto& w : wrong) all.insert(get(w));
    return all;
}

bool only_zero_keys(const std::vector<WrongElement>& wrong) {
    return std::all_of(wrong.begin(), wrong.end(), [](const auto& w) { return w.visible_keys == 0; });
}

/// Rows of every (b, h) that form whole aligned tiles of some usual height; 0 when they do not.
std::int64_t
whole_tile_height(const std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>>& rows) {
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

} // namespace

std::string classify(const std::vector<WrongElement>& wrong, const PatternContext& context) {
    if (wrong.empty()) return {};
    std::vector<std::string> parts;
    std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>> rows;
    for (const auto& w : wrong) rows.insert({w.b, w.h, w.row, w.seqlen_q});

    const auto entries = values(wrong, [](const auto& w) { return w.b; });
    const auto heads = values(wrong, [](const auto& w) { return w.h; });
    if (context.batch > 1 && entries.size() == 1)
        parts.push_back(fmt::format("only entry {} of {} (offsets or lengths of an entry)", *entries.begin(),
                                    context.batch));
    if (context.nhead_q > 1 && heads.size() == 1) {
        parts.push_back(fmt::format("only head {} of {} (head map or a per-head array)", *heads.begin(),
                                    context.nhead_q));
    } else if (context.group_size > 1) {
        const auto residues = values(wrong, [&](const auto& w) { return w.h % context.group_size; });
        if (static_cast<std::int64_t>(residues.size()) < context.group_size)
            parts.push_back(
                fmt::format("only some heads of each group of {} (head map)", context.group_size));
    }

    if (only_zero_keys(wrong)) {
        parts.emplace_back("only rows without a visible key (0 and -inf expected)");
    } else if (const bool last = std::all_of(wrong.begin(), wrong.end(),
                                             [](const auto& w) { return w.row >= w.seqlen_q - 1; });
               last &&
               std::any_of(wrong.begin(), wrong.end(), [](const auto& w) { return w.seqlen_q > 1; })) {
        parts.emplace_back("only the last query row (query tail)");
    } else if (const auto height = whole_tile_height(rows); height > 0) {
        parts.push_back(
            fmt::format("whole tiles of {} rows (a skipped or repeated tile, or a race)", height));
    } else {
        const auto span = extent(wrong, [](const auto& w) { return w.row; });
        const auto longest = extent(wrong, [](const auto& w) { return w.seqlen_q; }).highest;
        if (span.lowest > 0 && span.highest == longest - 1)
            parts.push_back(
                fmt::format("only rows from {} on (mask edge, or a table that ends)", span.lowest));
        else if (span.highest + 1 < longest / 2 + 1 && span.highest < longest - 1)
            parts.push_back(
                fmt::format("only rows up to {} of {} (rows that see few keys)", span.highest, longest));
    }

    const auto column = extent(wrong, [](const auto& w) { return w.column; });
    if (column.lowest > 0 && column.highest == context.columns - 1)
        parts.push_back(fmt::format("only columns from {} on (value dimension tail)", column.lowest));
    else if (column.lowest >= 0 && column.lowest == column.highest && context.columns > 1)
        parts.push_back(fmt::format("only column {}", column.lowest));

    const auto many = static_cast<std::size_t>(std::count_if(wrong.begin(), wrong.end(), [&](const auto& w) {
        return w.visible_keys > context.median_visible_keys;
    }));
    if (context.median_visible_keys > 0 && many == wrong.size())
        parts.emplace_back("only rows that see more keys than the median (accumulation over keys)");

    const auto wrong_rows = static_cast<std::int64_t>(rows.size());
    std::string text = fmt::format("{} of {} checked rows", wrong_rows, context.checked_rows);
    if (wrong_rows == context.checked_rows && parts.empty())
        return text + ": everywhere (scale, layout, or the wrong kernel)";
    for (std::size_t p = 0; p < parts.size(); ++p) text += (p == 0 ? ": " : "; ") + parts[p];
    return text;
}

} // namespace fmha::harness
