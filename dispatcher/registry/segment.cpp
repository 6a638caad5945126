#include "dispatcher/registry/segment.hpp"

#include "dispatcher/types/error.hpp"

#include <algorithm>
#include <tuple>

namespace fmha {

namespace {

std::uint32_t packed(const Capabilities& has) {
    return static_cast<std::uint32_t>(has.mask) << 4 | static_cast<std::uint32_t>(has.sink) << 3 |
           static_cast<std::uint32_t>(has.sink_logit) << 2 |
           static_cast<std::uint32_t>(has.skip_min_seqlen_q) << 1 |
           static_cast<std::uint32_t>(has.store_randval);
}

/// The fields that decide the place of an entry.
struct Place {
    std::uint32_t arch = 0;
    std::uint64_t equality = 0;
    std::int32_t hdim_q = 0, hdim_v = 0;
    std::uint32_t capabilities = 0;
    std::int16_t tile_m0 = 0;
    std::int32_t selection_rank = 0;
    std::uint32_t index = 0;

    auto group() const {
        return std::tie(arch, equality, hdim_q, hdim_v, capabilities, tile_m0, selection_rank);
    }
};

} // namespace

Segment::Segment(std::vector<KernelEntry> entries) : entries_(std::move(entries)) {
    const auto count = static_cast<std::uint32_t>(entries_.size());
    std::vector<KernelFacts> facts(count);
    std::transform(entries_.begin(), entries_.end(), facts.begin(),
                   [](const KernelEntry& entry) { return facts_of(entry.config); });
    std::vector<Place> places(count);
    for (std::uint32_t i = 0; i < count; ++i) {
        const KernelConfig& config = entries_[i].config;
        auto arch = std::find(archs_.begin(), archs_.end(), config.arch);
        if (arch == archs_.end()) arch = archs_.insert(archs_.end(), config.arch);
        places[i] = {static_cast<std::uint32_t>(arch - archs_.begin()),
                     equality_key(config.signature),
                     facts[i].hdim_q,
                     facts[i].hdim_v,
                     packed(facts[i].has),
                     facts[i].tile_m0,
                     facts[i].selection_rank,
                     i};
    }
    std::sort(places.begin(), places.end(), [this](const Place& a, const Place& b) {
        if (const auto order = a.group() <=> b.group(); order != 0) return order < 0;
        return entries_[a.index].config < entries_[b.index].config;
    });
    order_.resize(count);
    candidate_of_.resize(count);
    for (std::uint32_t i = 0; i < count; ++i) {
        const Place& place = places[i];
        const KernelFacts& own = facts[place.index];
        order_[i] = place.index;
        const bool new_bucket =
            i == 0 || places[i - 1].arch != place.arch || places[i - 1].equality != place.equality;
        if (i > 0 && places[i - 1].group() == place.group()) {
            if (entry(i - 1).config == entry(i).config)
                throw KeyConflict("two entries of one batch have the same configuration: " +
                                  identifier(entry(i).config));
        } else {
            const auto next = static_cast<std::uint32_t>(candidates_.size());
            groups_.push_back({own, i, i, next, next});
        }
        Group& group = groups_.back();
        group.end = i + 1;
        // Neighbours mostly have the same facts, so the newest candidate is asked first.
        std::uint32_t candidate = group.last_candidate;
        while (candidate > group.first_candidate && !(candidates_[candidate - 1].facts == own)) --candidate;
        if (candidate == group.first_candidate) {
            candidates_.push_back({own, i});
            candidate = ++group.last_candidate;
        }
        candidate_of_[i] = candidate - 1;
        const auto last = static_cast<std::uint32_t>(groups_.size());
        if (new_bucket)
            buckets_[{place.arch, place.equality}] = {last - 1, last};
        else
            buckets_[{place.arch, place.equality}].end = last;
    }
}

Segment::Bucket Segment::bucket(const ArchName& arch, std::uint64_t equality_key) const {
    const auto known = std::find(archs_.begin(), archs_.end(), arch);
    if (known == archs_.end()) return {};
    const auto found = buckets_.find({static_cast<std::uint32_t>(known - archs_.begin()), equality_key});
    if (found == buckets_.end()) return {};
    return Bucket(groups_).subspan(found->second.begin, found->second.end - found->second.begin);
}

const KernelEntry* Segment::find(const KernelConfig& config) const {
    const KernelFacts facts = facts_of(config);
    for (const Group& group : bucket(config.arch, equality_key(config.signature))) {
        if (static_cast<const RankingFacts&>(group) != static_cast<const RankingFacts&>(facts)) continue;
        const auto begin = order_.begin() + group.begin, end = order_.begin() + group.end;
        const auto position =
            std::lower_bound(begin, end, config, [this](std::uint32_t index, const KernelConfig& value) {
                return entries_[index].config < value;
            });
        return position != end && entries_[*position].config == config ? &entries_[*position] : nullptr;
    }
    return nullptr;
}

} // namespace fmha
