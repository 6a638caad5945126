#pragma once

#include "harness/cases/case_fields.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace fmha::harness {

/// "stem[field=value,…]@seed": the fields of `always`, then every field in which the case differs from
/// `base`. Compounds appear only when they are in `always`.
std::string print_name(std::string_view stem, const Case& concrete, const Case& base,
                       const std::set<const CaseField*>& always);

/// Applies "field=value,…" in order. `shown` is the whole name, for messages; InputError for unknown fields,
/// values that a field does not take and fields set twice.
void apply_overrides(std::string_view overrides, const std::string& shown, Case& into);

/// The parts of a case's name.
struct SplitName {
    std::string stem, overrides;
    std::optional<std::uint64_t> seed;
};

/// "stem[overrides]@seed" into its parts; nullopt for text that is not the name of one case. `is_stem` tells whether
/// a text with brackets or "@" is the name of a file or folder. InputError for a bracket that is not closed and for a seed that is no number.
std::optional<SplitName> split_name(std::string_view name,
                                    const std::function<bool(const std::string&)>& is_stem);

} // namespace fmha::harness
