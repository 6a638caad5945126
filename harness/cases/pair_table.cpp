#include "harness/cases/pair_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace fmha::harness {

std::int64_t PairTable::empty_cells() const {
    std::int64_t empty = 0;
    for (std::size_t i = 0; i < levels.size(); ++i)
        for (std::size_t j = i + 1; j < levels.size(); ++j)
            if (pairs(i, j) && cells[i][j].cases == 0 && cells[i][j].why_not.empty()) ++empty;
    return empty;
}

std::string PairTable::to_text() const {
    std::vector<std::string> reasons;
    const auto letter = [&reasons](const std::string& why) {
        auto found = std::ranges::find(reasons, why);
        if (found == reasons.end()) {
            reasons.push_back(why);
            found = std::prev(reasons.end());
        }
        // Reasons past the alphabet continue with capitals; the files name far fewer.
        const auto number = found - reasons.begin();
        return std::string(1, static_cast<char>(number < 26 ? 'a' + number : 'A' + number - 26));
    };

    std::size_t width = 0;
    for (const auto& level : levels) width = std::max(width, level.feature.size() + level.value.size() + 1);

    std::string text = fmt::format("{:{}}  ", "", width + 4);
    auto out = std::back_inserter(text);
    for (std::size_t j = 0; j < levels.size(); ++j) fmt::format_to(out, "{:>4}", j + 1);
    text += '\n';
    for (std::size_t i = 0; i < levels.size(); ++i) {
        fmt::format_to(out, "{:>3} {:<{}}  ", i + 1, levels[i].feature + '=' + levels[i].value, width);
        for (std::size_t j = 0; j < levels.size(); ++j) {
            const auto& cell = cells[std::min(i, j)][std::max(i, j)];
            if (!pairs(i, j))
                text += "   .";
            else if (!cell.why_not.empty())
                fmt::format_to(out, "{:>4}", letter(cell.why_not));
            else
                fmt::format_to(out, "{:>4}", cell.cases);
        }
        text += '\n';
    }
    text +=
        "\nA number counts rows of the covering array that have both; '.' is one feature against itself.\n";
    for (const auto& why : reasons) fmt::format_to(out, "{} = {}\n", letter(why), why);
    fmt::format_to(out, "{} empty cells\n", empty_cells());
    return text;
}

} // namespace fmha::harness
