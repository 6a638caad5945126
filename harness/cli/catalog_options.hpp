#pragma once

#include "kernels/arch/arch.hpp"
#include "kernels/catalog/catalog.hpp"

#include <string>
#include <string_view>
#include <vector>

/// Texts of command-line options as values of the catalogue. All throw InputError that names the option, the
/// value and the allowed ones.
namespace fmha::cli {

template <NamedEnum E>
E parse_option(std::string_view option, std::string_view text);

/// The architecture files of a folder, or those compiled in when `directory` is empty.
arch::ArchSet load_archs(const std::string& directory);

/// Names of architectures that exist in `archs`.
std::vector<ArchName> parse_archs(const arch::ArchSet& archs, const std::vector<std::string>& names);
/// The same for an enumeration. Targets of `ck` need no file of their own: upstream maps them to tables by prefix
/// (gfx908 is served by gfx9), and the rule set refuses those that no prefix covers.
std::vector<ArchName> parse_targets(const arch::ArchSet& archs, catalog::RuleSet rules,
                                    const std::vector<std::string>& names);

/// `fwd_splitkv` is that kernel family, `splitkv` everything behind that API, `bwd` all three of backward.
catalog::FamilySet parse_families(const std::vector<std::string>& names);

/// Upstream's globs: `PATTERN` for every API, `API=PATTERN` for one; several may stand in one text, with commas between.
std::array<std::string, 6> parse_filters(const std::vector<std::string>& texts);

} // namespace fmha::cli
