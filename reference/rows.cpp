#include "reference/rows.hpp"

#include "reference/attention.hpp"
#include "reference/numerics/mask.hpp"

#include <algorithm>

namespace fmha::reference {
namespace {

/// splitmix64, by Steele, Lea and Flood: one call advances the state.
std::uint64_t next_random(std::uint64_t& state) {
    state += 0x9E3779B97F4A7C15U;
    std::uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
}

/// The rows of every sample of one entry.
std::vector<std::int64_t> fixed_rows(const MaskArgs& mask, const EntryLengths& lengths) {
    const std::int64_t sq = lengths.seqlen_q;
    std::vector<std::int64_t> rows{0, 1, 31, 32, 63, 64, 127, 128, sq / 2, sq - 2, sq - 1};
    const auto sees = [&](std::int64_t i) { return sees_any_key(mask, sq, lengths.seqlen_k, i); };
    std::int64_t first = 0, last = sq - 1;
    while (first < sq && !sees(first)) ++first;
    while (last > first && !sees(last)) --last;
    rows.push_back(first);
    rows.push_back(last);
    std::erase_if(rows, [&](std::int64_t i) { return i < 0 || i >= sq; });
    return rows;
}

} // namespace

std::vector<RowId> all_rows(const FwdArgs& args) {
    std::vector<RowId> rows;
    for (std::int64_t b = 0; b < args.shape.batch; ++b) {
        const std::int64_t count = entry_lengths(args, b).seqlen_q;
        for (std::int64_t h = 0; h < args.shape.nhead_q; ++h)
            for (std::int64_t i = 0; i < count; ++i) rows.push_back({b, h, i});
    }
    return rows;
}

std::vector<RowId> sampled_rows(const FwdArgs& args, std::uint64_t seed, std::int64_t random_rows) {
    return sampled_rows(attention_of(args), seed, random_rows);
}

std::vector<RowId> sampled_rows(const AttentionArgs& args, std::uint64_t seed, std::int64_t random_rows) {
    std::vector<RowId> sample;
    std::uint64_t state = seed;
    for (std::int64_t b = 0; b < args.shape.batch; ++b) {
        const EntryLengths lengths = entry_lengths(args, b);
        if (lengths.seqlen_q <= 0) continue;
        const std::vector<std::int64_t> fixed = fixed_rows(args.mask, lengths);
        for (std::int64_t h = 0; h < args.shape.nhead_q; ++h) {
            std::vector<std::int64_t> rows = fixed;
            for (std::int64_t n = 0; n < random_rows; ++n)
                rows.push_back(static_cast<std::int64_t>(next_random(state) %
                                                         static_cast<std::uint64_t>(lengths.seqlen_q)));
            std::ranges::sort(rows);
            rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
            for (const std::int64_t i : rows) sample.push_back({b, h, i});
        }
    }
    return sample;
}

} // namespace fmha::reference
