#pragma once

#include "harness/cases/case_fields.hpp"
#include "harness/cases/pair_table.hpp"
#include "harness/cases/relative_text.hpp"

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fmha::harness {

/// One field set to one value, in canonical text, or in one that is relative to the tile of the planned kernel.
struct Setting {
    const CaseField* field = nullptr;
    std::string text;
    bool relative = false;
    friend bool operator==(const Setting&, const Setting&) = default;
};
using Settings = std::vector<Setting>;

/// A value that may differ by tier; a tier that is not named has the value of the nearest lower one.
template <class T>
struct PerTier {
    std::map<Tier, T> values;
    const T& at(Tier tier) const {
        auto found = values.upper_bound(tier);
        return found == values.begin() ? found->second : std::prev(found)->second;
    }
};

/// Fields that vary together, and their alternatives.
struct Axis {
    std::vector<const CaseField*> fields;
    PerTier<std::vector<Settings>> choices;
};

/// A combination that no kernel or rule allows, with the reason that the pair table prints.
struct Exclusion {
    std::vector<Settings> any_of; ///< for each named field, the values that take part
    std::string why;
};

/// One file of the case language (cases/README.md): an idea, and how it expands into concrete cases.
/// Reading is strict: every error is an InputError that names the file, the key and the value.
class CaseFile {
  public:
    /// `stem` is the beginning of case names ("fwd/tails").
    static CaseFile read(const std::filesystem::path& path, std::string stem);
    /// The same from text; `where` stands for the file in messages.
    static CaseFile parse(std::string_view text, const std::string& where, std::string stem);

    const std::string& stem() const { return stem_; }
    const std::string& about() const { return about_; }
    ApiFamily family() const { return family_; }
    /// Lowest tier that runs this file, and every tier that it names.
    Tier tier() const { return tiers_.front(); }
    const std::vector<Tier>& tiers() const { return tiers_; }
    const std::vector<std::string>& labels() const { return labels_; }

    /// Every case of the tiers up to `highest`, each once with the lowest tier that has it, in file order
    /// (axes as written, the first slowest; then `also`; fills fastest). Values relative to the planned kernel become
    /// numbers: the tile of the kernel that `planned_tile` names for the case with these numbers. Cases that they make
    /// equal are one case. InputError for such a value without `planned_tile`, and for one that never settles, because
    /// each tile that it is computed with makes another kernel be planned.
    std::vector<Case> expand(Tier highest, const TilePlanner& planned_tile = {}) const;

    /// The name of a case of this file: stem, the fields that `each` and `pair` vary, every other field that
    /// differs from the file's `set`, and the seed.
    std::string name(const Case& concrete) const;

    /// The case that a name's bracket content describes; any field may be overridden. `shown` is the whole
    /// name, for messages.
    Case from_overrides(std::string_view overrides, const std::string& shown) const;

    /// The pairs that `cover` covers at a tier; empty without `cover`.
    std::optional<PairTable> pairs(Tier tier) const;

  private:
    friend class CaseFileReader;

    Case base(Tier tier) const;
    std::vector<Settings> rows(Tier tier) const;
    std::vector<Settings> covering_rows(Tier tier) const;
    Case concrete_case(const Case& start, const Settings& row, const TilePlanner& planned_tile) const;
    Case settled_case(const Case& start, const Settings& row, const TilePlanner& planned_tile) const;

    std::string where_, stem_, about_;
    ApiFamily family_ = ApiFamily::fwd;
    std::vector<Tier> tiers_;
    std::vector<std::string> labels_;
    std::vector<std::pair<const CaseField*, PerTier<std::string>>> set_;
    std::vector<Axis> product_; ///< `each` and `pair`
    std::vector<Axis> cover_;
    std::vector<Exclusion> exclusions_;
    std::vector<Settings> also_;
    Axis fill_;
};

/// Applies settings in order.
void apply(const Settings& settings, Case& into);

} // namespace fmha::harness
