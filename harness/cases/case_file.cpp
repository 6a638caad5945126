#include "harness/cases/case_file.hpp"
#include "harness/cases/check_form.hpp"

#include "harness/cases/case_name.hpp"
#include "harness/cases/covering.hpp"

#include "dispatcher/types/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace fmha::harness {
namespace {

constexpr std::size_t most_cases = 1'000'000;

/// `prefix` times every alternative of `choices`, the alternatives fastest.
std::vector<Settings> times(const std::vector<Settings>& prefix, const std::vector<Settings>& choices) {
    std::vector<Settings> result;
    result.reserve(prefix.size() * choices.size());
    for (const auto& left : prefix)
        for (const auto& right : choices) {
            result.push_back(left);
            result.back().insert(result.back().end(), right.begin(), right.end());
        }
    return result;
}

/// The exclusions of a cover as sets of level numbers, so that a row is judged without touching text.
class LevelConstraints {
  public:
    LevelConstraints(const std::vector<Axis>& axes, const std::vector<Exclusion>& exclusions, Tier tier) {
        for (const auto& exclusion : exclusions) {
            Constraint constraint{{}, exclusion.why};
            for (const auto& values : exclusion.any_of) {
                const auto axis = std::ranges::find_if(axes, [&](const Axis& candidate) {
                    return std::ranges::find(candidate.fields, values.front().field) !=
                           candidate.fields.end();
                });
                const auto& levels = axis->choices.at(tier);
                std::vector<bool> member(levels.size());
                for (std::size_t level = 0; level < levels.size(); ++level)
                    member[level] = std::ranges::any_of(levels[level], [&](const Setting& setting) {
                        return std::ranges::find(values, setting) != values.end();
                    });
                constraint.parts.emplace_back(static_cast<std::size_t>(axis - axes.begin()),
                                              std::move(member));
            }
            constraints_.push_back(std::move(constraint));
        }
    }

    /// The first exclusion that the levels chosen so far fulfil, nullptr without one.
    const std::string* why_forbidden(const LevelRow& row) const {
        for (const auto& constraint : constraints_)
            if (std::ranges::all_of(constraint.parts, [&](const auto& part) {
                    const int level = row[part.first];
                    return level >= 0 && part.second[static_cast<std::size_t>(level)];
                }))
                return &constraint.why;
        return nullptr;
    }

  private:
    struct Constraint {
        std::vector<std::pair<std::size_t, std::vector<bool>>> parts;
        std::string why;
    };
    std::vector<Constraint> constraints_;
};

std::vector<int> level_counts(const std::vector<Axis>& axes, Tier tier) {
    std::vector<int> counts;
    for (const auto& axis : axes) counts.push_back(static_cast<int>(axis.choices.at(tier).size()));
    return counts;
}

std::string joined_text(const Settings& settings) {
    std::vector<std::string_view> texts;
    for (const auto& setting : settings) texts.push_back(setting.text);
    return fmt::format("{}", fmt::join(texts, " "));
}

/// A feature by its name in the pair table: its field, or the first of fields that vary together.
std::string feature_name(const Axis& axis) {
    return std::string(axis.fields.front()->name) + (axis.fields.size() > 1 ? ",…" : "");
}

} // namespace

void apply(const Settings& settings, Case& into) {
    for (const auto& setting : settings)
        if (!read_text(*setting.field, setting.text, into))
            throw InputError(fmt::format("\"{}\" is not a value of {}; expected {}", setting.text,
                                         setting.field->name, setting.field->takes));
}

Case CaseFile::base(Tier tier) const {
    Case start;
    start.family = family_;
    start.about = about_;
    start.labels = labels_;
    start.tier = tier;
    for (const auto& [field, values] : set_) apply({{field, values.at(tier)}}, start);
    return start;
}

std::vector<Settings> CaseFile::covering_rows(Tier tier) const {
    const LevelConstraints constraints(cover_, exclusions_, tier);
    const auto rows = covering_array(level_counts(cover_, tier), [&](const LevelRow& row) {
        return constraints.why_forbidden(row) != nullptr;
    });
    if (rows.empty())
        throw InputError(fmt::format(
            "{}: cover.exclude: excludes every row of tier {}; allowed: exclusions that leave a row", where_,
            to_string(tier)));
    std::vector<Settings> result;
    for (const auto& row : rows) {
        Settings settings;
        for (std::size_t f = 0; f < cover_.size(); ++f) {
            const auto& level = cover_[f].choices.at(tier)[static_cast<std::size_t>(row[f])];
            settings.insert(settings.end(), level.begin(), level.end());
        }
        result.push_back(std::move(settings));
    }
    return result;
}

std::optional<PairTable> CaseFile::pairs(Tier tier) const {
    if (cover_.empty()) return std::nullopt;
    PairTable table;
    std::vector<std::pair<std::size_t, int>> where;
    for (std::size_t f = 0; f < cover_.size(); ++f) {
        const auto& levels = cover_[f].choices.at(tier);
        for (std::size_t level = 0; level < levels.size(); ++level) {
            table.levels.push_back({feature_name(cover_[f]), joined_text(levels[level])});
            where.emplace_back(f, static_cast<int>(level));
        }
    }

    const LevelConstraints constraints(cover_, exclusions_, tier);
    const auto counts = level_counts(cover_, tier);
    const Forbidden forbidden = [&](const LevelRow& row) {
        return constraints.why_forbidden(row) != nullptr;
    };
    const auto rows = covering_rows(tier);
    const auto has = [&](const Settings& row, std::size_t level) {
        const auto [feature, number] = where[level];
        return std::ranges::all_of(
            cover_[feature].choices.at(tier)[static_cast<std::size_t>(number)],
            [&](const Setting& setting) { return std::ranges::find(row, setting) != row.end(); });
    };

    table.cells.assign(table.levels.size(), std::vector<PairTable::Cell>(table.levels.size()));
    for (std::size_t i = 0; i < table.levels.size(); ++i)
        for (std::size_t j = i + 1; j < table.levels.size(); ++j) {
            if (!table.pairs(i, j)) continue;
            auto& cell = table.cells[i][j];
            cell.cases =
                std::ranges::count_if(rows, [&](const Settings& row) { return has(row, i) && has(row, j); });
            if (cell.cases > 0) continue;
            LevelRow alone(cover_.size(), -1);
            alone[where[i].first] = where[i].second;
            alone[where[j].first] = where[j].second;
            if (const auto* why = constraints.why_forbidden(alone))
                cell.why_not = *why;
            else if (!complete_row(alone, counts, forbidden))
                cell.why_not = "follows from the exclusions together";
        }
    return table;
}

std::vector<Settings> CaseFile::rows(Tier tier) const {
    // A slip of the pen multiplies to more than any machine can hold.
    std::size_t count = fill_.choices.at(tier).size();
    for (const auto& axis : product_) {
        const std::size_t values = axis.choices.at(tier).size();
        if (count > most_cases / values)
            throw InputError(fmt::format("{}: each and pair make more than {} cases", where_, most_cases));
        count *= values;
    }
    std::vector<Settings> result;
    if (!product_.empty() || !cover_.empty() || also_.empty()) {
        result.emplace_back();
        for (const auto& axis : product_) result = times(result, axis.choices.at(tier));
        if (!cover_.empty()) result = times(result, covering_rows(tier));
    }
    result.insert(result.end(), also_.begin(), also_.end());
    return times(result, fill_.choices.at(tier));
}

Case CaseFile::concrete_case(const Case& start, const Settings& row, const TilePlanner& planned_tile) const {
    if (std::ranges::any_of(row, &Setting::relative)) return settled_case(start, row, planned_tile);
    auto concrete = start;
    apply(row, concrete);
    concrete.id = name(concrete);
    check_form(concrete, where_ + ": " + concrete.id);
    return concrete;
}

Case CaseFile::settled_case(const Case& start, const Settings& row, const TilePlanner& planned_tile) const {
    const auto first = std::ranges::find_if(row, &Setting::relative);
    const std::string value = fmt::format("{}: {}: \"{}\"", where_, first->field->name, first->text);
    if (!planned_tile)
        throw InputError(value + " is relative to the planned kernel, and there is none to ask");
    // Which kernel is planned may depend on the very numbers that depend on it. From the smallest tile that there is,
    // it takes a step or two.
    Tile tile{.m0 = 16, .n0 = 16};
    for (int step = 0; step < 8; ++step) {
        Settings numbers = row;
        for (auto& setting : numbers)
            if (setting.relative) setting = {setting.field, *at_tile(setting.text, tile)};
        auto concrete = concrete_case(start, numbers, planned_tile);
        const auto planned = planned_tile(concrete);
        // Without a kernel any numbers do: the run says why there is none.
        if (!planned || (planned->m0 == tile.m0 && planned->n0 == tile.n0)) return concrete;
        tile = *planned;
    }
    throw InputError(value +
                     " does not settle: each tile that it is computed with makes another one be planned");
}

std::vector<Case> CaseFile::expand(Tier highest, const TilePlanner& planned_tile) const {
    std::vector<Case> cases;
    std::set<std::string> seen;
    for (const auto tier : tiers_) {
        if (tier > highest) break;
        std::map<std::string, bool> seen_in_tier; ///< and whether its numbers were relative
        const auto start = base(tier);
        for (const auto& row : rows(tier)) {
            auto concrete = concrete_case(start, row, planned_tile);
            const bool relative = std::ranges::any_of(row, &Setting::relative);
            const auto [before, is_new] = seen_in_tier.emplace(concrete.id, relative);
            if (!is_new && !relative && !before->second)
                throw InputError(fmt::format("{}: the case {} appears twice", where_, concrete.id));
            if (seen.insert(concrete.id).second) cases.push_back(std::move(concrete));
        }
    }
    return cases;
}

std::string CaseFile::name(const Case& concrete) const {
    std::set<const CaseField*> varied;
    for (const auto& axis : product_) varied.insert(axis.fields.begin(), axis.fields.end());
    return print_name(stem_, concrete, base(tier()), varied);
}

Case CaseFile::from_overrides(std::string_view overrides, const std::string& shown) const {
    auto concrete = base(tier());
    apply_overrides(overrides, shown, concrete);
    return concrete;
}

} // namespace fmha::harness
