#include "kernels/catalog/ck/groups.hpp"

#include "dispatcher/types/error.hpp"
#include "kernels/catalog/tables/reader.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace fmha::catalog::ck {

namespace {

constexpr const char* folder = "tables/ck/";

/// A group is called as its file: "tables/ck/gfx9.json#" is gfx9.
std::string group_of(const arch::Part& part) {
    const std::size_t begin = std::string_view(folder).size();
    return part.source.substr(begin, part.source.rfind(".json") - begin);
}

/// Group table that has `family` with the longest prefix of `target`; null when no table covers it.
const arch::Part* find_group(const std::vector<arch::Part>& parts, std::string_view target,
                             const std::string& family) {
    const arch::Part* best = nullptr;
    std::size_t best_length = 0;
    for (const arch::Part& part : parts) {
        const auto& prefix = part.value->at("prefix").text();
        if (target.substr(0, prefix.size()) != prefix || prefix.size() <= best_length) continue;
        if (!part.value->at("families").contains(family)) continue;
        best = &part;
        best_length = prefix.size();
    }
    return best;
}

[[noreturn]] void refuse(const std::vector<arch::Part>& parts, const ArchName& target,
                         const std::string& family) {
    std::string known;
    for (const arch::Part& part : parts)
        if (part.value->at("families").contains(family))
            known += fmt::format("{}{}", known.empty() ? "" : ", ", part.value->at("prefix").text());
    throw InputError(fmt::format("rule set ck has no {} tables for target \"{}\"; known prefixes: {}", family,
                                 target.view(), known));
}

std::vector<std::string> group_names(const arch::ArchSet& archs, const Request& request,
                                     const std::string& family, bool all_or_nothing) {
    const std::vector<arch::Part> parts = archs.tables(folder);
    std::vector<std::string> names;
    for (const ArchName& target : request.targets) {
        const arch::Part* group = find_group(parts, target, family);
        if (group == nullptr && all_or_nothing) return {};
        if (group == nullptr) refuse(parts, target, family);
        const std::string name = group_of(*group);
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    std::stable_sort(names.begin(), names.end(),
                     [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
    return names;
}

} // namespace

std::vector<tables::ForwardGroup> forward_groups(const arch::ArchSet& archs, const Request& request,
                                                 KernelFamily family) {
    const bool prefill = family == KernelFamily::batch_prefill;
    const std::vector<std::string> names =
        request.custom_factory && family == KernelFamily::fwd
            ? std::vector<std::string>{"gfx9"}
            : group_names(archs, request, std::string(to_string(family)), prefill);
    const tables::Reader reader(archs, folder, all_rules());
    std::vector<tables::ForwardGroup> groups;
    for (const std::string& name : names)
        groups.push_back({prefill ? ArchName() : ArchName(name), reader.forward(name, family)});
    return groups;
}

std::vector<tables::BackwardGroup> backward_groups(const arch::ArchSet& archs, const Request& request) {
    const tables::Reader reader(archs, folder, all_rules());
    std::vector<tables::BackwardGroup> groups;
    for (const std::string& name : group_names(archs, request, "bwd", false))
        groups.push_back({ArchName(name), reader.backward(name)});
    return groups;
}

} // namespace fmha::catalog::ck
