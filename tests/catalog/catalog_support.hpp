#pragma once

#include "kernels/catalog/catalog.hpp"

#include <nlohmann/json.hpp>

#include <functional>
#include <set>
#include <string>
#include <vector>

/// Helpers of the catalogue's tests: lists of names, and architecture sets with one entry changed.
namespace fmha::catalog::test {

inline const arch::ArchSet& archs() {
    static const arch::ArchSet set = arch::ArchSet::built_in();
    return set;
}

inline Request request(RuleSet rules, std::vector<ArchName> targets, std::string_view profile = "0") {
    Request r;
    r.rules = rules;
    r.targets = std::move(targets);
    r.profile = parse_profile(profile);
    return r;
}

inline FamilySet only(std::initializer_list<KernelFamily> families) {
    FamilySet set = FamilySet::none();
    for (const KernelFamily family : families) set.add(family);
    return set;
}

inline std::vector<std::string> names(const arch::ArchSet& archs, const Request& r) {
    std::vector<std::string> result;
    enumerate(archs, r, [&](const KernelConfig& config) {
        append_name({r.rules, r.masks}, config, result.emplace_back());
    });
    return result;
}

inline std::set<std::string> name_set(const arch::ArchSet& archs, const Request& r) {
    const std::vector<std::string> all = names(archs, r);
    return {all.begin(), all.end()};
}

/// The compiled-in files after `change` was applied to the one at `path`; `extra` files are added. The schema is
/// checked, as for files that a user supplies.
arch::ArchSet changed(const std::string& path, const std::function<void(nlohmann::json&)>& change,
                      const std::vector<std::pair<std::string, std::string>>& extra = {});

/// Names that only `after` has, and names that only `before` has.
struct Difference {
    std::vector<std::string> gained, lost;
};
Difference difference(const std::set<std::string>& before, const std::set<std::string>& after);

} // namespace fmha::catalog::test
