#include "harness/cli/catalog_options.hpp"

#include "dispatcher/types/error.hpp"
#include "dispatcher/types/family_traits.hpp"
#include "harness/cli/comma_parts.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace fmha::cli {

template <NamedEnum E>
E parse_option(std::string_view option, std::string_view text) {
    if (const auto value = parse_enum<E>(text)) return *value;
    throw InputError(fmt::format("{} {}: not known; allowed: {}", option, text, allowed_names<E>()));
}
template catalog::RuleSet parse_option(std::string_view, std::string_view);
template catalog::MaskVocabulary parse_option(std::string_view, std::string_view);
template ApiFamily parse_option(std::string_view, std::string_view);

arch::ArchSet load_archs(const std::string& directory) {
    return directory.empty() ? arch::ArchSet::built_in() : arch::ArchSet::load(directory);
}

namespace {

/// A list with an architecture twice would have, and count, its kernels twice.
void refuse_repeated(const std::vector<std::string>& names) {
    for (auto name = names.begin(); name != names.end(); ++name)
        if (std::find(names.begin(), name, *name) != name)
            throw InputError(fmt::format("--arch {}: the architecture is named twice", *name));
}

} // namespace

std::vector<ArchName> parse_archs(const arch::ArchSet& archs, const std::vector<std::string>& names) {
    refuse_repeated(names);
    std::vector<ArchName> parsed;
    for (const std::string& name : names) parsed.push_back(archs.at(name).name());
    return parsed;
}

std::vector<ArchName> parse_targets(const arch::ArchSet& archs, catalog::RuleSet rules,
                                    const std::vector<std::string>& names) {
    if (rules != catalog::RuleSet::ck) return parse_archs(archs, names);
    refuse_repeated(names);
    constexpr std::size_t longest = 16;
    std::vector<ArchName> targets;
    for (const std::string& name : names) {
        if (name.empty() || name.size() > longest)
            throw InputError(
                fmt::format("--arch \"{}\": a target's name has 1 to {} characters", name, longest));
        targets.emplace_back(std::string_view(name));
    }
    return targets;
}

catalog::FamilySet parse_families(const std::vector<std::string>& names) {
    if (names.empty()) return {};
    auto families = catalog::FamilySet::none();
    for (const std::string& name : names) {
        if (name == "all") return {};
        if (const auto family = parse_enum<KernelFamily>(name)) {
            families.add(*family);
        } else if (const auto api = parse_enum<ApiFamily>(name)) {
            families.bits = static_cast<std::uint16_t>(families.bits | catalog::families_of(*api).bits);
        } else {
            throw InputError(
                fmt::format("--family {}: not known; allowed: {}, or bwd, splitkv, pagedkv, appendkv for "
                            "every kernel behind that API, or all",
                            name, allowed_names<KernelFamily>()));
        }
    }
    return families;
}

std::array<std::string, 6> parse_filters(const std::vector<std::string>& texts) {
    std::array<std::string, 6> filters;
    // An API with several kinds of kernels has one pattern for each, separated by '@'.
    const auto for_api = [](ApiFamily api, const std::string& pattern) {
        if (pattern.find('@') != std::string::npos) return pattern;
        const std::vector<std::string_view> of_each(traits_of(api).stages.size(), pattern);
        return fmt::format("{}", fmt::join(of_each, "@"));
    };
    const auto add = [&](const std::string& text) {
        const auto equals = text.find('=');
        if (equals != std::string::npos) {
            const auto api = parse_option<ApiFamily>("--filter", text.substr(0, equals));
            filters[static_cast<std::size_t>(api)] = text.substr(equals + 1);
            return;
        }
        for (const auto& [api, unused] : EnumTable<ApiFamily>::names)
            filters[static_cast<std::size_t>(api)] = for_api(api, text);
    };
    for (const std::string& list : texts) {
        if (const std::string why = why_no_list(list); !why.empty()) throw InputError("--filter: " + why);
        for (const std::string& text : comma_parts(list)) add(text);
    }
    return filters;
}

} // namespace fmha::cli
