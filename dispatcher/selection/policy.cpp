#include "dispatcher/selection/policy.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace fmha {

namespace {

using Pair = std::tuple<std::int32_t, std::int32_t>;

/// Calls `visit(segment, bucket)` for every bucket whose architecture and equality fields fit the query.
template <class Visit>
void each_bucket(const Snapshot& kernels, const StageQuery& query, Visit&& visit) {
    for (const auto& segment : kernels.segments())
        for (const ArchName& arch : segment->archs())
            if (arch_matches(query.arch, arch)) {
                const Segment::Bucket bucket = segment->bucket(arch, query.equality_key);
                if (!bucket.empty()) visit(*segment, bucket);
            }
}

/// A group can be skipped as a whole when its head dimensions or its capabilities do not do.
bool may_accept(const Segment::Group& group, const StageQuery& query) {
    return group.hdim_q >= query.hdim_q && group.hdim_v >= query.hdim_v &&
           detail::mask_fits(group.has.mask, query.needs.mask) && group.has.sink >= query.needs.sink &&
           group.has.sink_logit >= query.needs.sink_logit &&
           group.has.skip_min_seqlen_q >= query.needs.skip_min_seqlen_q &&
           group.has.store_randval >= query.needs.store_randval;
}

/// Position of the first kernel of the group that takes the stage. Kernels of a group rank alike and lie in order
/// of configuration, so the others can only lose to it.
std::optional<std::uint32_t> first_accepted(const Segment& segment, const Segment::Group& group,
                                            const StageQuery& query) {
    for (const Segment::Candidate& candidate : segment.candidates(group))
        if (check_sizes(query, candidate.facts)) return candidate.first;
    return std::nullopt;
}

/// The smallest pair of head dimensions that has an accepted kernel, and the context of that pair.
struct SmallestPair {
    bool found = false;
    Pair pair;
    ScoreContext context;
};

SmallestPair smallest_pair(const Snapshot& kernels, const StageQuery& query) {
    SmallestPair best;
    each_bucket(kernels, query, [&](const Segment& segment, Segment::Bucket bucket) {
        for (const Segment::Group& group : bucket) {
            const Pair pair{group.hdim_q, group.hdim_v};
            if (best.found && pair > best.pair) break;
            if (!may_accept(group, query)) continue;
            const std::int64_t tile = group.tile_m0;
            const bool same_pair = best.found && best.pair == pair;
            if (same_pair && tile <= best.context.largest_tile_m0) continue;
            if (first_accepted(segment, group, query)) best = {true, pair, {tile}};
        }
    });
    return best;
}

} // namespace

const KernelEntry* ScorePolicy::select(const Snapshot& kernels, const StageQuery& query) const {
    const SmallestPair smallest = smallest_pair(kernels, query);
    if (!smallest.found) return nullptr;
    const KernelEntry* best = nullptr;
    Score best_score{};
    each_bucket(kernels, query, [&](const Segment& segment, Segment::Bucket bucket) {
        for (const Segment::Group& group : bucket) {
            const Pair pair{group.hdim_q, group.hdim_v};
            if (pair > smallest.pair) break;
            if (pair < smallest.pair || !may_accept(group, query)) continue;
            const Score own = score(query, group, smallest.context);
            if (best != nullptr && own > best_score) continue;
            const auto position = first_accepted(segment, group, query);
            if (!position) continue;
            const KernelEntry& entry = segment.entry(*position);
            if (best != nullptr && own == best_score && !(entry.config < best->config)) continue;
            best = &entry;
            best_score = own;
        }
    });
    return best;
}

std::vector<RankedKernel> ScorePolicy::rank(const Snapshot& kernels, const StageQuery& query) const {
    // Each pair has its own context, as if it were the smallest: that is how it is ranked when smaller ones are gone.
    std::map<Pair, ScoreContext> contexts;
    const auto each_accepted = [&](auto&& visit) {
        each_bucket(kernels, query, [&](const Segment& segment, Segment::Bucket bucket) {
            for (const Segment::Group& group : bucket)
                for (std::uint32_t position = group.begin; position < group.end; ++position)
                    if (check_sizes(query, segment.facts(position)))
                        visit(group, segment.entry(position), contexts[{group.hdim_q, group.hdim_v}]);
        });
    };
    each_accepted([](const Segment::Group& group, const KernelEntry&, ScoreContext& context) {
        context.largest_tile_m0 = std::max<std::int64_t>(context.largest_tile_m0, group.tile_m0);
    });
    struct Accepted {
        Pair pair;
        Score criteria;
        const KernelEntry* entry;
    };
    std::vector<Accepted> accepted;
    each_accepted([&](const Segment::Group& group, const KernelEntry& entry, const ScoreContext& context) {
        accepted.push_back({{group.hdim_q, group.hdim_v}, score(query, group, context), &entry});
    });
    std::ranges::sort(accepted, [](const Accepted& a, const Accepted& b) {
        return std::tie(a.pair, a.criteria, a.entry->config) < std::tie(b.pair, b.criteria, b.entry->config);
    });
    std::vector<RankedKernel> ranked;
    ranked.reserve(accepted.size());
    for (const Accepted& one : accepted)
        ranked.push_back({one.entry, {one.criteria.begin(), one.criteria.end()}});
    return ranked;
}

std::span<const std::string_view> SeqTunePolicy::criteria() const {
    static constexpr std::array<std::string_view, 6> names{
        "hdim_q", "hdim_v", "category", "selection_rank", "tile_m0", "surplus capabilities"};
    return names;
}

Score SeqTunePolicy::score(const StageQuery& query, const RankingFacts& kernel,
                           const ScoreContext& context) const {
    const std::int64_t tile = kernel.tile_m0, length = query.seqlen_q;
    const bool divides = tile > 0 && length % tile == 0;
    std::int64_t category = 4;
    if (length <= tile && divides)
        category = 0;
    else if (tile == 64)
        category = 1;
    else if (tile == context.largest_tile_m0)
        category = 2;
    else if (divides)
        category = 3;
    return {kernel.hdim_q,         kernel.hdim_v, category,
            kernel.selection_rank, tile,          surplus(kernel.has, query.needs)};
}

} // namespace fmha
