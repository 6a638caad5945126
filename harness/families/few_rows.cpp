#include "harness/families/few_rows.hpp"

#include "harness/data/random.hpp"
#include "reference/attention.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>
#include <utility>

namespace fmha::harness {
namespace {

using reference::RowId;

constexpr std::int64_t fixed_rows = 13; // of an entry and head (tolerances B.1)

/// Rows of a sequence that lie close together.
using Window = std::array<std::int64_t, 6>;

/// Some of a sequence of `length` rows. No window is longer than the smallest tile of a kernel, nor does it cross the border of one
/// unless the end of the sequence does.
Window window(std::int64_t length, const Random& random) {
    constexpr std::int64_t rows = 32;
    switch (random.integer(0, 0, 3)) {
    case 0:
        return {0, 1, 15, 16, 30, 31};
    case 1: {
        const std::int64_t first = length / 2 / rows * rows;
        return {first, first + 1, first + 7, length / 2, first + 24, first + 31};
    }
    case 2:
        return {length - 17, length - 16, length - 9, length - 3, length - 2, length - 1};
    default: {
        const std::int64_t first = rows * random.integer(1, 0, (length - 1) / rows);
        return {first, first + 2, first + 5, first + 13, first + 23, first + 29};
    }
    }
}

} // namespace

std::vector<RowId> few_rows(const reference::AttentionArgs& args, std::uint64_t seed) {
    const std::int64_t entries = args.shape.batch, heads = args.shape.nhead_q;
    constexpr std::uint64_t stream = 0x7A11; // of nothing else
    const Random random(seed, stream);
    const std::pair<std::int64_t, std::int64_t> first{0, 0}, last{entries - 1, heads - 1};
    std::vector<RowId> sample = reference::sampled_rows(args, seed, 0);
    std::erase_if(sample, [&](const RowId& row) {
        return std::pair(row.b, row.h) != first && std::pair(row.b, row.h) != last;
    });
    std::set<std::pair<std::int64_t, std::int64_t>> others;
    const Random head = random.row(0, 0), entry = random.row(0, 1);
    for (std::int64_t b = 0; b < entries; ++b)
        others.emplace(b, head.integer(static_cast<std::uint64_t>(b), 0, heads - 1));
    for (std::int64_t h = 0; h < heads; ++h)
        others.emplace(entry.integer(static_cast<std::uint64_t>(h), 0, entries - 1), h);
    others.erase(first);
    others.erase(last);
    for (const auto& [b, h] : others) {
        const std::int64_t length = reference::entry_lengths(args, b).seqlen_q;
        if (length <= 0) continue;
        const Random own = random.row(1 + static_cast<std::uint64_t>(b), static_cast<std::uint64_t>(h));
        for (const std::int64_t i : window(length, own))
            sample.push_back({b, h, std::clamp<std::int64_t>(i, 0, length - 1)});
    }
    std::ranges::sort(sample);
    sample.erase(std::unique(sample.begin(), sample.end()), sample.end());
    return sample;
}

std::int64_t most_few_rows(std::int64_t entries, std::int64_t heads) {
    return 2 * fixed_rows + std::int64_t{std::tuple_size_v<Window>} * (entries + heads);
}

} // namespace fmha::harness
