#include "dispatcher/types/check_append.hpp"

#include "dispatcher/types/check_cache.hpp"
#include "dispatcher/types/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace fmha {
namespace {

/// Consecutive rows of one slot or page that an entry writes.
struct Run {
    std::int64_t slot = 0, row = 0, count = 0, entry = 0;
};

/// The pages that receive the new keys of entry b, whose first position is `first`.
void add_pages(const AppendKvArgs& args, std::int64_t b, std::int64_t first, std::vector<Run>& runs) {
    const KvPlace& place = args.place;
    for (std::int64_t i = 0; i < args.seqlen_knew;) {
        const std::int64_t logical = (first + i) / place.page_size, row = (first + i) % place.page_size;
        const std::int64_t count = std::min(place.page_size - row, args.seqlen_knew - i);
        runs.push_back({checked_page(place, b, logical), row, count, b});
        i += count;
    }
}

void check_disjoint(std::vector<Run> runs) {
    std::ranges::sort(runs, {}, [](const Run& run) { return std::pair(run.slot, run.row); });
    for (std::size_t n = 1; n < runs.size(); ++n) {
        const Run &a = runs[n - 1], &b = runs[n];
        if (a.slot == b.slot && a.row + a.count > b.row)
            throw ProblemError(
                "V-2", "place", b.slot,
                fmt::format("entries {} and {} append to the same row {} of cache slot or page {}", a.entry,
                            b.entry, b.row, b.slot));
    }
}

} // namespace

void check_append(const AppendKvArgs& args) {
    const KvPlace& place = args.place;
    check_page_numbers(place);
    const std::int64_t capacity = cache_capacity(args), added = args.seqlen_knew;
    if (added < 0)
        throw ProblemError("V-3", "seqlen_knew", added,
                           fmt::format("seqlen_knew is {}; a number of keys is 0 or more", added));
    if (args.lengths.seqlen_k == nullptr && args.shape.batch > 0)
        throw ProblemError("V-1", "seqlen_k", "absent",
                           "append-KV needs the array seqlen_k, the tokens already in the cache");
    if (place.page_size > 0 && place.block_table == nullptr && added > 0)
        throw ProblemError("P-2", "block_table", "absent", "a paged cache needs a block_table");
    std::vector<Run> runs;
    for (std::int64_t b = 0; b < args.shape.batch; ++b) {
        const std::int64_t cached = args.lengths.seqlen_k[b];
        if (cached < 0)
            throw ProblemError("V-1", "seqlen_k", cached,
                               fmt::format("seqlen_k of entry {} is {}; a length is 0 or more", b, cached));
        if (added > capacity - cached) // their sum may not fit into 64 bits
            throw ProblemError("V-3", "seqlen_knew", added,
                               fmt::format("entry {} has {} keys and is to get {}; its cache has room for {}",
                                           b, cached, added, capacity));
        if (added == 0) continue;
        if (place.page_size > 0) {
            add_pages(args, b, cached, runs);
            continue;
        }
        runs.push_back({checked_slot(place, b), cached, added, b});
    }
    check_disjoint(std::move(runs));
}

} // namespace fmha
