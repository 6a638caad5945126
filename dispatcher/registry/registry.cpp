#include "dispatcher/registry/registry.hpp"

#include "dispatcher/types/error.hpp"
#include "kernels/catalog/catalog.hpp"

#include <algorithm>
#include <tuple>
#include <unordered_set>

namespace fmha {

std::size_t Snapshot::size() const {
    std::size_t count = 0;
    for (const auto& segment : segments_) count += segment->size();
    return count;
}

const KernelEntry* Snapshot::find(const KernelConfig& config) const {
    for (const auto& segment : segments_)
        if (const KernelEntry* entry = segment->find(config)) return entry;
    return nullptr;
}

Registry::Registry(std::string name, KernelNamer namer) : namer_(std::move(namer)), name_(std::move(name)) {}

namespace {

enum class Outcome : std::uint8_t { keep_old, take_new };

/// The rule for one configuration registered twice.
Outcome resolve(const KernelEntry& old, const KernelEntry& fresh) {
    if (fresh.priority != old.priority)
        return fresh.priority > old.priority ? Outcome::take_new : Outcome::keep_old;
    if (fresh.instance == nullptr) return Outcome::keep_old;
    if (old.instance == nullptr) return Outcome::take_new;
    if (old.instance->name() == fresh.instance->name()) return Outcome::keep_old;
    throw KeyConflict("kernels \"" + old.instance->name() + "\" and \"" + fresh.instance->name() +
                      "\" have the same configuration: " + identifier(fresh.config));
}

/// Leaves one entry for each configuration; the earlier of two counts as registered first.
void settle_duplicates(std::vector<KernelEntry>& entries) {
    std::vector<std::uint32_t> order(entries.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::vector<std::size_t> hashes(entries.size());
    std::transform(entries.begin(), entries.end(), hashes.begin(),
                   [](const KernelEntry& entry) { return hash_value(entry.config); });
    std::sort(order.begin(), order.end(),
              [&](auto a, auto b) { return std::tie(hashes[a], a) < std::tie(hashes[b], b); });
    std::vector<bool> dropped(entries.size(), false);
    bool any = false;
    for (std::size_t i = 0; i < order.size(); ++i) {
        if (dropped[order[i]]) continue;
        for (std::size_t j = i + 1; j < order.size() && hashes[order[j]] == hashes[order[i]]; ++j) {
            if (dropped[order[j]] || entries[order[i]].config != entries[order[j]].config) continue;
            if (resolve(entries[order[i]], entries[order[j]]) == Outcome::take_new)
                std::swap(entries[order[i]], entries[order[j]]);
            dropped[order[j]] = any = true;
        }
    }
    if (!any) return;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < entries.size(); ++i)
        if (!dropped[i]) entries[kept++] = std::move(entries[i]);
    entries.resize(kept);
}

} // namespace

void Registry::add(std::shared_ptr<const KernelInstance> instance, Priority priority) {
    if (instance == nullptr) throw InputError("a registry takes no null kernel instance");
    const KernelConfig config = instance->config();
    std::vector<KernelEntry> entries;
    entries.push_back({config, std::move(instance), priority});
    add(std::move(entries));
}

void Registry::add(const KernelConfig& config, Priority priority) {
    add(std::span(&config, 1), priority);
}

void Registry::add(std::span<const KernelConfig> configs, Priority priority) {
    std::vector<KernelEntry> entries;
    entries.reserve(configs.size());
    for (const KernelConfig& config : configs) entries.push_back({config, nullptr, priority});
    add(std::move(entries));
}

void Registry::add(std::vector<KernelEntry> entries) {
    {
        const std::lock_guard writing(writers_);
        add_locked(std::move(entries));
    }
    export_after_change();
}

void Registry::add_locked(std::vector<KernelEntry> entries) {
    settle_duplicates(entries);
    const auto current = snapshot();
    Segments segments(current->segments().begin(), current->segments().end());
    // Entries that replace an older one take its segment with them, so that no configuration is in two
    // places.
    std::unordered_set<const KernelEntry*> replaced;
    if (!segments.empty())
        std::erase_if(entries, [&](const KernelEntry& entry) {
            const KernelEntry* old = current->find(entry.config);
            if (old == nullptr) return false;
            if (resolve(*old, entry) == Outcome::keep_old) return true;
            replaced.insert(old);
            return false;
        });
    if (entries.empty()) return;
    const auto absorb = [&](const Segment& segment) {
        for (const KernelEntry& entry : segment.entries())
            if (!replaced.contains(&entry)) entries.push_back(entry);
    };
    if (!replaced.empty())
        std::erase_if(segments, [&](const std::shared_ptr<const Segment>& segment) {
            const bool touched =
                std::any_of(segment->entries().begin(), segment->entries().end(),
                            [&](const KernelEntry& entry) { return replaced.contains(&entry); });
            if (touched) absorb(*segment);
            return touched;
        });
    // Sizes stay at least halved from one segment to the next: few segments to search, few entries to move.
    while (!segments.empty() && segments.back()->size() < 2 * entries.size()) {
        absorb(*segments.back());
        segments.pop_back();
    }
    segments.push_back(std::make_shared<const Segment>(std::move(entries)));
    std::sort(segments.begin(), segments.end(),
              [](const auto& a, const auto& b) { return a->size() > b->size(); });
    publish(std::move(segments));
}

void Registry::merge_from(const Registry& other, Priority priority) {
    if (&other == this) return;
    std::vector<KernelEntry> entries;
    const auto theirs = other.snapshot();
    entries.reserve(theirs->size());
    for (const auto& segment : theirs->segments())
        for (const KernelEntry& entry : segment->entries())
            entries.push_back({entry.config, entry.instance, priority});
    add(std::move(entries));
}

std::size_t Registry::filter(const std::function<bool(const KernelEntry&)>& keep) {
    std::size_t dropped = 0;
    {
        const std::lock_guard writing(writers_);
        std::vector<KernelEntry> kept;
        const auto current = snapshot();
        for (const auto& segment : current->segments())
            for (const KernelEntry& entry : segment->entries())
                if (keep(entry)) kept.push_back(entry);
        dropped = current->size() - kept.size();
        if (dropped > 0) {
            Segments segments;
            if (!kept.empty()) segments.push_back(std::make_shared<const Segment>(std::move(kept)));
            publish(std::move(segments));
        }
    }
    if (dropped > 0) export_after_change();
    return dropped;
}

std::size_t Registry::filter_by_arch(std::string_view arch) {
    return filter([&](const KernelEntry& entry) {
        return entry.config.arch.empty() || entry.config.arch.view() == arch;
    });
}

std::size_t Registry::filter_by_profile(std::string_view profile) {
    const catalog::Profile kept = catalog::parse_profile(profile);
    return filter([&](const KernelEntry& entry) { return catalog::kept_by(kept, entry.config); });
}

void Registry::clear() {
    {
        const std::lock_guard writing(writers_);
        publish({});
    }
    export_after_change();
}

void Registry::publish(Segments segments) {
    auto fresh = std::make_shared<const Snapshot>(std::move(segments));
    const std::lock_guard copying(state_);
    snapshot_.swap(fresh);
}

std::shared_ptr<const Snapshot> Registry::snapshot() const {
    const std::lock_guard copying(state_);
    return snapshot_;
}

std::string Registry::name() const {
    const std::lock_guard copying(state_);
    return name_;
}

void Registry::set_name(std::string name) {
    const std::lock_guard copying(state_);
    name_ = std::move(name);
}

std::optional<KernelEntry> Registry::lookup(std::string_view identifier) const {
    const auto config = parse_identifier<KernelConfig>(identifier);
    if (!config) return std::nullopt;
    const auto current = snapshot();
    const KernelEntry* entry = current->find(*config);
    return entry != nullptr ? std::optional(*entry) : std::nullopt;
}

std::string Registry::name_of(const KernelEntry& entry) const {
    if (entry.instance != nullptr) return entry.instance->name();
    return namer_ ? namer_(entry.config) : identifier(entry.config);
}

std::vector<KernelEntry> Registry::get_all() const {
    struct Named {
        const KernelEntry* entry;
        std::string name;
        auto key() const {
            const KernelConfig& c = entry->config;
            return std::tuple(-static_cast<int>(entry->priority), c.algorithm.selection_rank,
                              c.signature.hdim_q, c.signature.hdim_v, c.algorithm.tile.m0);
        }
    };
    const auto current = snapshot();
    std::vector<Named> named;
    named.reserve(current->size());
    for (const auto& segment : current->segments())
        for (const KernelEntry& entry : segment->entries()) named.push_back({&entry, name_of(entry)});
    std::sort(named.begin(), named.end(), [](const Named& a, const Named& b) {
        const auto left = a.key(), right = b.key();
        if (left != right) return left < right;
        return a.name != b.name ? a.name < b.name : a.entry->config < b.entry->config;
    });
    std::vector<KernelEntry> entries;
    entries.reserve(named.size());
    for (const Named& one : named) entries.push_back(*one.entry);
    return entries;
}

} // namespace fmha
