#include "harness/cases/covering.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace fmha::harness {
namespace {

std::size_t index(int value) {
    return static_cast<std::size_t>(value);
}

/// Pairs that still need a row, as one bit for each pair of global level numbers.
class OpenPairs {
  public:
    explicit OpenPairs(const std::vector<int>& level_counts) : first_(level_counts.size()) {
        int total = 0;
        for (std::size_t f = 0; f < level_counts.size(); ++f) {
            first_[f] = total;
            total += level_counts[f];
        }
        side_ = index(total);
        open_.assign(side_ * side_, true);
    }

    bool is_open(std::size_t f, int a, std::size_t g, int b) const { return open_[position(f, a, g, b)]; }
    void close(std::size_t f, int a, std::size_t g, int b) {
        open_[position(f, a, g, b)] = false;
        open_[position(g, b, f, a)] = false;
    }
    void close_all(const LevelRow& row) {
        for (std::size_t f = 0; f < row.size(); ++f)
            for (std::size_t g = f + 1; g < row.size(); ++g) close(f, row[f], g, row[g]);
    }
    /// Open pairs that level `a` of feature `f` would close with the levels already chosen.
    int gain(const LevelRow& row, std::size_t f, int a) const {
        int count = 0;
        for (std::size_t g = 0; g < row.size(); ++g)
            if (g != f && row[g] >= 0 && is_open(f, a, g, row[g])) ++count;
        return count;
    }

  private:
    std::size_t position(std::size_t f, int a, std::size_t g, int b) const {
        return index(first_[f] + a) * side_ + index(first_[g] + b);
    }
    std::vector<int> first_;
    std::size_t side_ = 0;
    std::vector<bool> open_;
};

/// Depth-first completion that tries the levels of each feature in the order given by `rank`.
bool complete(LevelRow& row, const std::vector<int>& level_counts, const Forbidden& forbidden,
              const std::function<std::vector<int>(const LevelRow&, std::size_t)>& rank) {
    const auto blank = std::ranges::find(row, -1);
    if (blank == row.end()) return true;
    const auto feature = static_cast<std::size_t>(blank - row.begin());
    for (const int level : rank(row, feature)) {
        row[feature] = level;
        if (!forbidden(row) && complete(row, level_counts, forbidden, rank)) return true;
    }
    row[feature] = -1;
    return false;
}

} // namespace

bool complete_row(LevelRow& row, const std::vector<int>& level_counts, const Forbidden& forbidden) {
    if (forbidden(row)) return false;
    return complete(row, level_counts, forbidden, [&](const LevelRow&, std::size_t feature) {
        std::vector<int> levels(index(level_counts[feature]));
        std::iota(levels.begin(), levels.end(), 0);
        return levels;
    });
}

std::vector<LevelRow> covering_array(const std::vector<int>& level_counts, const Forbidden& forbidden) {
    OpenPairs open(level_counts);
    const auto by_gain = [&](const LevelRow& row, std::size_t feature) {
        std::vector<int> levels(index(level_counts[feature]));
        std::iota(levels.begin(), levels.end(), 0);
        std::ranges::stable_sort(
            levels, [&](int a, int b) { return open.gain(row, feature, a) > open.gain(row, feature, b); });
        return levels;
    };

    std::vector<LevelRow> rows;
    for (std::size_t f = 0; f < level_counts.size(); ++f)
        for (std::size_t g = f + 1; g < level_counts.size(); ++g)
            for (int a = 0; a < level_counts[f]; ++a)
                for (int b = 0; b < level_counts[g]; ++b) {
                    if (!open.is_open(f, a, g, b)) continue;
                    LevelRow row(level_counts.size(), -1);
                    row[f] = a;
                    row[g] = b;
                    if (forbidden(row) || !complete(row, level_counts, forbidden, by_gain)) {
                        open.close(f, a, g, b);
                        continue;
                    }
                    open.close_all(row);
                    rows.push_back(std::move(row));
                }
    if (rows.empty() && level_counts.size() == 1)
        for (int a = 0; a < level_counts[0]; ++a)
            if (!forbidden({a})) rows.push_back({a});
    return rows;
}

} // namespace fmha::harness
