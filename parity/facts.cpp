#include "parity/facts.hpp"

#include "kernels/catalog/query/columns.hpp"
#include "parity/digest.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <unordered_map>

namespace fmha::parity {
namespace {

using catalog::MaskVocabulary;
using catalog::Request;
using catalog::RuleSet;

constexpr std::size_t family_count = EnumTable<KernelFamily>::names.size();

/// Names one after the other in one text, for lists of a million.
class NameArena {
  public:
    void clear() {
        text_.clear();
        ends_.clear();
    }
    std::string& text() { return text_; }
    void close_name() { ends_.push_back(text_.size()); }
    std::size_t size() const { return ends_.size(); }
    std::string_view operator[](std::size_t i) const {
        const auto start = i == 0 ? 0 : ends_[i - 1];
        return std::string_view(text_).substr(start, ends_[i] - start);
    }

  private:
    std::string text_;
    std::vector<std::size_t> ends_;
};

/// Digests of one family after another; most lists are the same in several profiles and are sorted once.
class Digests {
  public:
    Fact fact(const NameArena& names) {
        Fact fact;
        fact.kernels = static_cast<std::int64_t>(names.size());
        if (names.size() == 0) return fact;
        for (std::size_t i = 0; i < names.size(); ++i) digest_.add(names[i]);
        fact.emission = digest_.finish();
        const auto [entry, is_new] = sorted_of_.try_emplace(fact.emission);
        if (is_new) entry->second = sorted_digest(names);
        fact.sorted = entry->second;
        return fact;
    }

  private:
    std::string sorted_digest(const NameArena& names) {
        std::vector<std::string_view> views(names.size());
        for (std::size_t i = 0; i < names.size(); ++i) views[i] = names[i];
        std::sort(views.begin(), views.end());
        for (const auto view : views) digest_.add(view);
        return digest_.finish();
    }

    NameDigest digest_;
    std::map<std::string, std::string> sorted_of_;
};

Request request_for(RuleSet rules, const ArchName& arch, catalog::ProfileId profile, MaskVocabulary masks) {
    Request request;
    request.rules = rules;
    request.targets = {arch};
    request.profile = catalog::named_profile(profile);
    request.masks = masks;
    return request;
}

/// Counts and digests of every family of one request.
void add_lists(const arch::ArchSet& archs, const Request& request, Digests& digests, Facts& facts) {
    std::array<NameArena, family_count> names;
    const catalog::Naming naming(request.rules, request.masks);
    catalog::enumerate(archs, request, [&](const KernelConfig& config) {
        NameArena& arena = names[static_cast<std::size_t>(config.signature.family)];
        catalog::append_name(naming, config, arena.text());
        arena.close_name();
    });
    for (const auto& [family, unused] : EnumTable<KernelFamily>::names)
        facts.lists[{request.masks, family, request.profile.id}] =
            digests.fact(names[static_cast<std::size_t>(family)]);
}

void add_counts(const arch::ArchSet& archs, const Request& request, Facts& facts) {
    std::array<std::int64_t, family_count> counts{};
    catalog::enumerate(archs, request, [&](const KernelConfig& config) {
        ++counts[static_cast<std::size_t>(config.signature.family)];
    });
    for (const auto& [family, unused] : EnumTable<KernelFamily>::names)
        facts.lists[{request.masks, family, request.profile.id}].kernels =
            counts[static_cast<std::size_t>(family)];
}

/// The columns whose values are counted.
constexpr std::array<std::string_view, 16> counted_columns{
    "data_type",    "hdim_q",        "hdim_v",         "pipeline",  "tile_m0",  "tile_n0",
    "tile_k0",      "wave",          "warp",           "load_mode", "tile_tag", "use_trload",
    "block_per_cu", "max_seq_len_q", "selection_rank", "constraint"};

/// The record with the counted fields alone, so that few distinct ones are left.
KernelConfig counted_part(const KernelConfig& config) {
    KernelConfig part;
    part.signature.family = config.signature.family;
    part.signature.data_type = config.signature.data_type;
    part.signature.hdim_q = config.signature.hdim_q;
    part.signature.hdim_v = config.signature.hdim_v;
    part.algorithm = config.algorithm;
    part.algorithm.pad = {};
    return part;
}

std::string cell_text(const catalog::Cell& cell) {
    if (const auto* text = std::get_if<std::string_view>(&cell)) return std::string(*text);
    if (const auto* flag = std::get_if<bool>(&cell)) return *flag ? "1" : "0";
    return std::to_string(std::get<std::int64_t>(cell));
}

void add_values(const arch::ArchSet& archs, const Request& request, Facts& facts) {
    std::unordered_map<KernelConfig, std::int64_t, FieldHash> parts;
    catalog::enumerate(archs, request, [&](const KernelConfig& config) { ++parts[counted_part(config)]; });
    std::string scratch;
    for (const catalog::Column& column : catalog::columns()) {
        if (std::find(counted_columns.begin(), counted_columns.end(), column.name) == counted_columns.end())
            continue;
        const std::string unset = cell_text(column.read(KernelConfig{}, scratch));
        for (const auto& [part, records] : parts) {
            auto value = cell_text(column.read(part, scratch));
            if (value != unset || column.name == "data_type")
                facts.values[{part.signature.family, column.name, std::move(value)}] += records;
        }
    }
}

void add_violations(const arch::ArchSet& archs, const Request& request, Facts& facts) {
    const HardwareLimits& hardware = archs.at(request.targets.front()).hardware().limits;
    catalog::enumerate(archs, request, [&](const KernelConfig& config) {
        if (is_valid(config, hardware)) return;
        for (const RuleFinding& finding : validate(config, hardware))
            if (finding.severity == Severity::error) ++facts.violations[std::string(finding.id)];
    });
}

std::span<const EnumName<MaskVocabulary>> vocabularies(RuleSet rules) {
    const std::span all(EnumTable<MaskVocabulary>::names);
    return rules == RuleSet::ck ? all : all.first(1);
}

} // namespace

Request reference_request(RuleSet rules, const ArchName& arch) {
    const auto profile = rules == RuleSet::sweep ? catalog::ProfileId::ck_default : catalog::ProfileId::all;
    return request_for(rules, arch, profile, MaskVocabulary::simplified);
}

bool keeps_names(RuleSet rules) {
    return rules != RuleSet::sweep;
}

Facts collect_facts(const arch::ArchSet& archs, RuleSet rules, const ArchName& arch) {
    Facts facts;
    facts.rules = rules;
    facts.arch = arch;
    Digests digests;
    const Request reference = reference_request(rules, arch);
    for (const auto& [masks, unused] : vocabularies(rules))
        for (const catalog::ProfileRow& row : catalog::profiles()) {
            const Request request = request_for(rules, arch, row.id, masks);
            if (keeps_names(rules) || row.id == reference.profile.id)
                add_lists(archs, request, digests, facts);
            else
                add_counts(archs, request, facts);
        }
    add_values(archs, reference, facts);
    add_violations(archs, reference, facts);
    return facts;
}

std::vector<std::string> names_of(const arch::ArchSet& archs, const Request& request) {
    std::vector<std::string> names;
    const catalog::Naming naming(request.rules, request.masks);
    catalog::enumerate(archs, request, [&](const KernelConfig& config) {
        catalog::append_name(naming, config, names.emplace_back());
    });
    return names;
}

} // namespace fmha::parity
