#include "dispatcher/system/files.hpp"
#include "dispatcher/types/json.hpp"
#include "dispatcher/types/strict_json.hpp"
#include "harness/cases/case_enums.hpp"
#include "harness/cases/case_file.hpp"
#include "harness/cases/relative_text.hpp"

#include "dispatcher/types/did_you_mean.hpp"
#include "dispatcher/types/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace fmha::harness {

/// Turns the JSON of one file into a CaseFile; every member function reads one part of the language.
class CaseFileReader {
  public:
    CaseFileReader(const std::string& where, std::string stem) {
        file_.where_ = where;
        file_.stem_ = std::move(stem);
    }

    CaseFile read(const Json& top) {
        static constexpr std::array<std::string_view, 10> keys{"about", "family", "tier",  "labels", "set",
                                                               "each",  "pair",   "cover", "also",   "fill"};
        expect_object(top, "the file");
        check_keys(top, "", keys);
        file_.about_ = text(required(top, "about"), "about");
        if (file_.about_.empty()) fail("about", "must be a sentence, it is empty");
        file_.family_ = family(text(required(top, "family"), "family"));
        own_tier_ = tier(text(required(top, "tier"), "tier"), "tier");
        tiers_.insert(own_tier_);

        if (top.contains("labels")) read_labels(top["labels"]);
        if (top.contains("set")) read_set(top["set"]);
        if (top.contains("each")) read_each(top["each"], "each", file_.product_);
        if (top.contains("pair")) read_pair(top["pair"], "pair", file_.product_);
        if (top.contains("cover")) read_cover(top["cover"]);
        if (top.contains("also")) read_also(top["also"]);
        read_fill(required(top, "fill"));

        for (const auto named : tiers_)
            if (named < own_tier_)
                fail("tier", fmt::format("\"{}\" is above tier \"{}\", which a value of this file names",
                                         to_string(own_tier_), to_string(named)));
        file_.tiers_.assign(tiers_.begin(), tiers_.end());
        return std::move(file_);
    }

  private:
    [[noreturn]] void fail(const std::string& key, const std::string& sentence) const {
        throw InputError(fmt::format("{}: {}: {}", file_.where_, key, sentence));
    }

    void expect_object(const Json& value, const std::string& key) const {
        if (!value.is_object()) fail(key, fmt::format("expected an object, got {}", value.dump()));
    }

    void expect_filled_list(const Json& value, const std::string& key) const {
        if (!value.is_array() || value.empty())
            fail(key, fmt::format("expected a list with at least one value, got {}", value.dump()));
    }

    void check_keys(const Json& object, const std::string& key,
                    std::span<const std::string_view> known) const {
        for (const auto& [name, unused] : object.items())
            if (std::ranges::find(known, name) == known.end())
                fail(key.empty() ? name : key + '.' + name,
                     fmt::format("is not a key of the case language{}", did_you_mean(name, known)));
    }

    const Json& required(const Json& object, const std::string& key, const std::string& parent = {}) const {
        const auto found = object.find(key);
        if (found == object.end()) fail(parent.empty() ? key : parent + '.' + key, "is missing");
        return *found;
    }

    std::string text(const Json& value, const std::string& key) const {
        if (!value.is_string()) fail(key, fmt::format("expected a string, got {}", value.dump()));
        return value.get<std::string>();
    }

    Tier tier(const std::string& name, const std::string& key) const {
        const auto parsed = parse_enum<Tier>(name);
        if (!parsed) fail(key, fmt::format("\"{}\" is not a tier; allowed: {}", name, allowed_names<Tier>()));
        return *parsed;
    }

    ApiFamily family(const std::string& name) const {
        const auto parsed = parse_enum<ApiFamily>(name, /*accept_aliases=*/false);
        if (!parsed)
            fail("family", fmt::format("\"{}\" is not known; allowed: {}", name,
                                       ApiFamilies::having([](const ApiTraits&) { return true; }).names()));
        return *parsed;
    }

    const CaseField& field(const std::string& name, const std::string& key) const {
        return field_of(file_.family_, name, fmt::format("{}: {}", file_.where_, key));
    }

    Setting setting(const CaseField& target, const Json& value, const std::string& key) const {
        Case scratch;
        if (target.read(value, scratch))
            if (auto canonical = target.print(scratch); !canonical.empty() || value == "")
                return {&target, std::move(canonical)};
        if (value.is_string() && names_tile(value.text())) return relative_setting(target, value, key);
        fail(key, fmt::format("{} is not allowed; expected {}", value.dump(), target.takes));
    }

    /// A value relative to the tile of the planned kernel, tried with some tile.
    Setting relative_setting(const CaseField& target, const Json& value, const std::string& key) const {
        const auto& text = value.text();
        const auto tried = at_tile(text, Tile{.m0 = 64, .n0 = 64});
        if (!tried)
            fail(key, fmt::format("{} is not allowed; numbers relative to the planned kernel are {}",
                                  value.dump(), tile_grammar));
        Case scratch;
        if (!read_text(target, *tried, scratch))
            fail(key, fmt::format("{} is not allowed; with tiles of 64 it is \"{}\", expected {}",
                                  value.dump(), *tried, target.takes));
        return {&target, text, /*relative=*/true};
    }

    /// Each elementary field may be set in one place of a file only.
    void claim(const CaseField& target, const std::string& key) {
        for (const auto name : target.elementary()) {
            const auto [place, is_new] = claimed_.emplace(name, key);
            if (!is_new && place->second != key)
                fail(key, fmt::format("sets {}, which {} sets too", name, place->second));
        }
    }

    /// Calls `read_one(value, key)` for a plain value, or for each entry of {"smoke": …, "full": …}.
    template <class T, class ReadOne>
    PerTier<T> per_tier(const Json& value, const std::string& key, ReadOne&& read_one) {
        PerTier<T> result;
        if (!value.is_object()) {
            result.values.emplace(own_tier_, read_one(value, key));
            return result;
        }
        if (value.empty()) fail(key, "names no tier");
        for (const auto& [name, entry] : value.items()) {
            const auto named = tier(name, key + '.' + name);
            tiers_.insert(named);
            result.values.emplace(named, read_one(entry, key + '.' + name));
        }
        if (!result.values.contains(own_tier_))
            fail(key, fmt::format("has no value for \"{}\", the tier of the file", to_string(own_tier_)));
        return result;
    }

    void read_labels(const Json& value) {
        expect_filled_list(value, "labels");
        for (const auto& label : value) {
            file_.labels_.push_back(text(label, "labels"));
            const auto& name = file_.labels_.back();
            if (name.empty() ||
                name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string::npos)
                fail("labels",
                     fmt::format("\"{}\" is not a label; a label has letters a-z, digits and _", name));
        }
    }

    void read_set(const Json& value) {
        expect_object(value, "set");
        for (const auto& [name, entry] : value.items()) {
            const std::string key = "set." + name;
            const auto& target = field(name, key);
            claim(target, key);
            if (name == "fill") fail(key, "fills are stated by the key \"fill\"");
            file_.set_.emplace_back(
                &target, per_tier<std::string>(entry, key, [&](const Json& one, const std::string& at) {
                    auto chosen = setting(target, one, at);
                    if (chosen.relative)
                        fail(at, fmt::format("{} is relative to the planned kernel; names show such a value "
                                             "only under each, pair, cover or also",
                                             one.dump()));
                    return chosen.text;
                }));
        }
    }

    /// Values of one axis; "around(n)" stands for n − 1, n, n + 1.
    std::vector<Settings> alternatives(const CaseField& target, const Json& list,
                                       const std::string& key) const {
        expect_filled_list(list, key);
        std::vector<Settings> result;
        for (std::size_t i = 0; i < list.size(); ++i) {
            const std::string at = fmt::format("{}[{}]", key, i);
            for (const Json& one : around(list[i], at)) result.push_back({setting(target, one, at)});
        }
        for (std::size_t i = 0; i < result.size(); ++i)
            if (std::find(result.begin(), result.begin() + static_cast<std::ptrdiff_t>(i), result[i]) !=
                result.begin() + static_cast<std::ptrdiff_t>(i))
                fail(key, fmt::format("has the value {} twice", result[i].front().text));
        return result;
    }

    std::vector<Json> around(const Json& value, const std::string& key) const {
        if (!value.is_string() || value.text().find("around(") == std::string::npos) return {value};
        const auto texts = spread(value.text());
        if (!texts)
            fail(key, fmt::format("{} is not allowed; expected \"around(n)\" with n > 0, eight times at most",
                                  value.dump()));
        std::vector<Json> values;
        for (const auto& text : *texts) {
            const auto number = Json::try_parse(text);
            values.push_back(number && number->is_number() ? *number : Json(text));
        }
        return values;
    }

    void read_each(const Json& value, const std::string& where, std::vector<Axis>& into) {
        expect_object(value, where);
        for (const auto& [name, entry] : value.items()) {
            const std::string key = where + '.' + name;
            if (name.find(',') != std::string::npos)
                fail(key, "names several fields; fields that vary together are a pair");
            const auto& target = field(name, key);
            if (name == "fill") fail(key, "fills are stated by the key \"fill\"");
            claim(target, key);
            into.push_back(
                {{&target},
                 per_tier<std::vector<Settings>>(entry, key, [&](const Json& one, const std::string& at) {
                     return alternatives(target, one, at);
                 })});
        }
    }

    void read_pair(const Json& value, const std::string& where, std::vector<Axis>& into) {
        expect_object(value, where);
        for (const auto& [names, entry] : value.items()) {
            const std::string key = where + '.' + names;
            Axis axis;
            std::set<std::string_view> set;
            for (std::size_t begin = 0; begin <= names.size();) {
                const auto end = std::min(names.find(',', begin), names.size());
                axis.fields.push_back(&field(names.substr(begin, end - begin), key));
                for (const auto name : axis.fields.back()->elementary())
                    if (!set.insert(name).second) fail(key, fmt::format("sets {} twice", name));
                if (axis.fields.back()->name == "fill") fail(key, "fills are stated by the key \"fill\"");
                claim(*axis.fields.back(), key);
                begin = end + 1;
            }
            if (axis.fields.size() < 2)
                fail(key, "names one field; a field that varies alone belongs to each");
            axis.choices =
                per_tier<std::vector<Settings>>(entry, key, [&](const Json& one, const std::string& at) {
                    return tuples(axis.fields, one, at);
                });
            into.push_back(std::move(axis));
        }
    }

    std::vector<Settings> tuples(const std::vector<const CaseField*>& fields, const Json& list,
                                 const std::string& key) const {
        expect_filled_list(list, key);
        std::vector<Settings> result;
        for (std::size_t i = 0; i < list.size(); ++i) {
            const std::string at = fmt::format("{}[{}]", key, i);
            if (!list[i].is_array() || list[i].size() != fields.size())
                fail(at, fmt::format("expected a list of {} values, got {}", fields.size(), list[i].dump()));
            Settings row;
            for (std::size_t f = 0; f < fields.size(); ++f)
                row.push_back(setting(*fields[f], list[i][f], at));
            if (std::ranges::find(result, row) != result.end())
                fail(at, fmt::format("repeats {}", list[i].dump()));
            result.push_back(std::move(row));
        }
        return result;
    }

    void read_cover(const Json& value) {
        static constexpr std::array<std::string_view, 3> keys{"each", "pair", "exclude"};
        expect_object(value, "cover");
        check_keys(value, "cover", keys);
        if (value.contains("each")) read_each(value["each"], "cover.each", file_.cover_);
        if (value.contains("pair")) read_pair(value["pair"], "cover.pair", file_.cover_);
        if (file_.cover_.size() < 2) fail("cover", "needs at least two axes");
        if (value.contains("exclude")) read_exclusions(value["exclude"]);
    }

    void read_exclusions(const Json& value) {
        expect_filled_list(value, "cover.exclude");
        for (std::size_t i = 0; i < value.size(); ++i) {
            const std::string key = fmt::format("cover.exclude[{}]", i);
            expect_object(value[i], key);
            Exclusion exclusion;
            exclusion.why = text(required(value[i], "why", key), key + ".why");
            for (const auto& [name, entry] : value[i].items()) {
                if (name == "why") continue;
                const std::string at = key + '.' + name;
                const auto& target = field(name, at);
                const bool covered = std::ranges::any_of(file_.cover_, [&](const Axis& axis) {
                    return std::ranges::find(axis.fields, &target) != axis.fields.end();
                });
                if (!covered) fail(at, "is not a field of a cover axis");
                const Json list = entry.is_array() ? entry : Json::array({entry});
                Settings values;
                for (const auto& one : list) values.push_back(setting(target, one, at));
                exclusion.any_of.push_back(std::move(values));
            }
            if (exclusion.any_of.size() < 2) fail(key, "needs at least two fields");
            file_.exclusions_.push_back(std::move(exclusion));
        }
    }

    void read_also(const Json& value) {
        expect_filled_list(value, "also");
        for (std::size_t i = 0; i < value.size(); ++i) {
            const std::string key = fmt::format("also[{}]", i);
            expect_object(value[i], key);
            Settings row;
            std::map<std::string_view, std::string_view> claimed;
            for (const auto& [name, entry] : value[i].items()) {
                const std::string at = key + '.' + name;
                const auto& target = field(name, at);
                if (name == "fill") fail(at, "fills are stated by the key \"fill\"");
                for (const auto part : target.elementary())
                    if (const auto [place, is_new] = claimed.emplace(part, target.name); !is_new)
                        fail(at, fmt::format("sets {}, which {} sets too", part, place->second));
                row.push_back(setting(target, entry, at));
            }
            file_.also_.push_back(std::move(row));
        }
    }

    void read_fill(const Json& value) {
        const auto* target = find_field("fill");
        file_.fill_ = {
            {target},
            per_tier<std::vector<Settings>>(value, "fill", [&](const Json& one, const std::string& at) {
                return alternatives(*target, one.is_string() ? Json::array({one}) : one, at);
            })};
    }

    CaseFile file_;
    Tier own_tier_ = Tier::smoke;
    std::set<Tier> tiers_;
    std::map<std::string_view, std::string> claimed_;
};

CaseFile CaseFile::parse(std::string_view text, const std::string& where, std::string stem) {
    return CaseFileReader(where, std::move(stem)).read(parse_strict_json(text, where));
}

CaseFile CaseFile::read(const std::filesystem::path& path, std::string stem) {
    return parse(system::read_file(path), path.string(), std::move(stem));
}

} // namespace fmha::harness
