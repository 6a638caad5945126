#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace fmha {

/// Insertions, deletions and substitutions of a letter that make `b` of `a`.
inline std::size_t edits(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
        }
    }
    return row.back();
}

/// "; did you mean X?" for the nearest candidate within two edits (or a third of the length), else "".
template <class Candidates>
std::string did_you_mean(std::string_view text, const Candidates& candidates) {
    std::string_view best;
    std::size_t fewest = std::max<std::size_t>(2, text.size() / 3) + 1;
    for (const std::string_view candidate : candidates) {
        const auto [shorter, longer] = std::minmax({text.size(), candidate.size()});
        if (longer - shorter >= fewest) continue; // so many edits at least
        if (const auto count = edits(text, candidate); count < fewest) {
            fewest = count;
            best = candidate;
        }
    }
    return best.empty() ? std::string() : "; did you mean " + std::string(best) + "?";
}

} // namespace fmha
