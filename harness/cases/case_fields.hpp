#pragma once

#include "dispatcher/types/family_traits.hpp"
#include "dispatcher/types/json.hpp"
#include "harness/cases/case.hpp"

#include <array>
#include <span>
#include <string>
#include <string_view>

namespace fmha::harness {

/// A set of API families.
class ApiFamilies {
  public:
    /// Those whose row of the table `column` holds for.
    static constexpr ApiFamilies having(bool (*column)(const ApiTraits&)) {
        ApiFamilies families;
        for (const ApiTraits& traits : api_table)
            if (column(traits)) families.bits_ |= 1U << static_cast<unsigned>(traits.api);
        return families;
    }
    constexpr bool contains(ApiFamily family) const {
        return (bits_ >> static_cast<unsigned>(family) & 1U) != 0;
    }
    /// "fwd or fwd_splitkv".
    std::string names() const;

  private:
    std::uint32_t bits_ = 0;
};

/// One field of the case language: the only place that knows how its text becomes part of a case and back.
/// Reading files, names, overrides and error messages all go through this table.
struct CaseField {
    std::string_view name;
    std::string takes; ///< the values allowed, completing "expected …"
    /// Elementary fields that it sets: itself, or both halves of a compound such as `hdim`.
    std::array<std::string_view, 2> sets;
    bool (*read)(const Json& value, Case& into);
    /// Canonical text, accepted back by `read_text`; empty when a compound cannot express the case.
    std::string (*print)(const Case& from);
    ApiFamilies families; ///< that have it

    bool compound() const { return sets[0] != name; }
    std::span<const std::string_view> elementary() const { return {sets.data(), compound() ? 2U : 1U}; }
};

/// All fields: compounds first (so that a name is short), then the elementary ones, which together determine
/// a case except for id, about, tier, labels and seed.
std::span<const CaseField> case_fields();

/// nullptr for an unknown name.
const CaseField* find_field(std::string_view name);

/// The field of this name. Throws InputError, led by `where`, where no such field exists or `family` has none.
const CaseField& field_of(ApiFamily family, std::string_view name, const std::string& where);

/// Reads the text of a name (`seqlen_k=129`), where numbers and lists are JSON and everything else is a
/// string. False when the field does not take it.
bool read_text(const CaseField& field, std::string_view text, Case& into);

/// `did_you_mean` over all field names.
std::string did_you_mean_field(std::string_view text);

} // namespace fmha::harness
