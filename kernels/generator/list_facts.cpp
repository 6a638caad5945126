#include "kernels/generator/list_facts.hpp"

#include "dispatcher/system/files.hpp"
#include "dispatcher/types/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <sstream>
#include <string_view>

namespace fmha::generator {
namespace {

struct GroupNumber {
    std::string_view name;
    std::int64_t GroupFacts::*member;
    bool of_the_list; ///< otherwise the compiler's choice
};

constexpr std::array group_numbers = {
    GroupNumber{"kernels", &GroupFacts::kernels, true},
    GroupNumber{"spilling kernels", &GroupFacts::spilling, false},
    GroupNumber{"bytes of scratch a lane", &GroupFacts::scratch_bytes, false},
    GroupNumber{"vector registers", &GroupFacts::vgprs, false},
    GroupNumber{"accumulation registers", &GroupFacts::agprs, false},
    GroupNumber{"bytes of LDS", &GroupFacts::lds_bytes, false},
};

constexpr std::string_view compiler_word = "compiler ";

std::filesystem::path facts_file(const std::filesystem::path& folder, const ArchName& arch) {
    return folder / (arch.str() + ".txt");
}

std::string_view family_of_group(std::string_view group) {
    return group.substr(0, group.find(' '));
}

/// The audited kernels of a build, by architecture.
std::map<std::string, ListFacts> facts_of(const built::Manifest& manifest) {
    std::map<std::string, ListFacts> by_arch;
    built::each_kernel(manifest, [&](const built::BuiltKernel& kernel, const built::CodeObject& object) {
        if (!kernel.resources) return;
        const built::Resources& used = *kernel.resources;
        ListFacts& facts = by_arch[object.arch.str()];
        facts.compiler = object.compiler;
        GroupFacts& group = facts.groups[tile_group(kernel.config)];
        ++group.kernels;
        group.spilling += spilling(used) ? 1 : 0;
        group.scratch_bytes = std::max(group.scratch_bytes, used.scratch_bytes);
        group.vgprs = std::max(group.vgprs, used.vgprs);
        group.agprs = std::max(group.agprs, used.agprs);
        group.lds_bytes = std::max(group.lds_bytes, used.lds_bytes);
    });
    return by_arch;
}

std::set<std::string, std::less<>> families_of(const ListFacts& facts) {
    std::set<std::string, std::less<>> families;
    for (const auto& [name, group] : facts.groups) families.emplace(family_of_group(name));
    return families;
}

void write_facts(const ListFacts& facts, const std::filesystem::path& folder, const ArchName& arch) {
    std::string text = fmt::format("{}{}\n{}", compiler_word, facts.compiler, facts.reasons);
    for (const auto& [name, group] : facts.groups) {
        for (const GroupNumber& number : group_numbers) text += fmt::format("{} ", group.*number.member);
        text += name + "\n";
    }
    std::filesystem::create_directories(folder);
    system::write_file(facts_file(folder, arch), text);
}

} // namespace

ListFacts read_facts(const std::filesystem::path& folder, const ArchName& arch) {
    const auto path = facts_file(folder, arch);
    ListFacts facts;
    if (!std::filesystem::exists(path)) return facts;
    std::istringstream lines(system::read_file(path));
    int at = 0;
    for (std::string line; std::getline(lines, line);) {
        ++at;
        if (at == 1 && line.starts_with(compiler_word)) {
            facts.compiler = line.substr(compiler_word.size());
            continue;
        }
        if (at > 1 && line.starts_with('#')) {
            facts.reasons += line + "\n";
            continue;
        }
        std::istringstream words(line);
        GroupFacts group;
        bool whole = at > 1;
        for (const GroupNumber& number : group_numbers)
            whole = whole && words >> group.*number.member && group.*number.member >= 0;
        std::string name;
        whole = whole && std::getline(words >> std::ws, name) && !name.empty();
        if (!whole || !facts.groups.try_emplace(name, group).second)
            throw InputError(fmt::format("{}:{}: expected {}", path.string(), at,
                                         at == 1 ? "\"compiler \" and its version"
                                                 : "six numbers from 0 on and a group that does not stand "
                                                   "there yet"));
    }
    return facts;
}

namespace {

/// Judges what was `built` for `arch` by its facts in the folder.
void judge(const std::string& arch, const ListFacts& built, const std::filesystem::path& folder,
           bool whole_families, FactsVerdict& verdict) {
    const ListFacts facts = read_facts(folder, ArchName(arch));
    const bool same_compiler = built.compiler == facts.compiler;
    const auto finding = [&](const std::string& name, const std::string& sentence) {
        verdict.findings.push_back({fmt::format("{} {}", arch, name), sentence});
    };
    for (const auto& [name, group] : built.groups) {
        ++verdict.judged;
        const auto known = facts.groups.find(name);
        if (known == facts.groups.end()) {
            finding(name, fmt::format("no facts in {}", facts_file(folder, ArchName(arch)).string()));
            continue;
        }
        for (const GroupNumber& number : group_numbers) {
            const auto [now, then] = std::pair(group.*number.member, known->second.*number.member);
            const bool lost = whole_families && number.of_the_list && now < then;
            if ((number.of_the_list || same_compiler) && (now > then || lost))
                finding(name, fmt::format("{} {}, the facts have {}", now, number.name, then));
        }
    }
    const auto families = families_of(built);
    for (const auto& [name, group] : facts.groups)
        if (whole_families && families.contains(family_of_group(name)) && !built.groups.contains(name))
            finding(name, fmt::format("lost, the facts have {} kernels", group.kernels));
    if (!same_compiler && !facts.groups.empty())
        verdict.notes.push_back(
            fmt::format("{}: the facts are of {}, these kernels of {}: only their numbers are judged", arch,
                        facts.compiler, built.compiler));
}

/// Groups of `after` that are new or others than before.
std::ptrdiff_t changed_groups(const ListFacts& before, const ListFacts& after) {
    return std::ranges::count_if(after.groups, [&](const auto& entry) {
        const auto known = before.groups.find(entry.first);
        return known == before.groups.end() || known->second != entry.second;
    });
}

} // namespace

FactsVerdict against_facts(const built::Manifest& manifest, const std::filesystem::path& folder,
                           bool whole_families) {
    FactsVerdict verdict;
    for (const auto& [arch, built] : facts_of(manifest)) judge(arch, built, folder, whole_families, verdict);
    return verdict;
}

std::vector<std::string> accept_facts(const built::Manifest& manifest, const std::filesystem::path& folder,
                                      const std::string& reason, const std::string& date) {
    std::vector<std::string> sentences;
    for (auto& [arch, built] : facts_of(manifest)) {
        ListFacts facts = read_facts(folder, ArchName(arch));
        const auto families = families_of(built);
        auto kept = facts.groups;
        std::erase_if(kept,
                      [&](const auto& entry) { return families.contains(family_of_group(entry.first)); });
        if (!kept.empty() && facts.compiler != built.compiler)
            throw InputError(fmt::format("{}: holds other families, compiled by {}; these are of {}",
                                         facts_file(folder, ArchName(arch)).string(), facts.compiler,
                                         built.compiler));
        built.groups.merge(kept);
        const auto changes = changed_groups(facts, built);
        const auto& groups = built.groups;
        const bool lost = std::ranges::any_of(
            facts.groups, [&](const auto& entry) { return !groups.contains(entry.first); });
        sentences.push_back(fmt::format("{}: {} groups changed or are new", arch, changes));
        if (changes == 0 && !lost && facts.compiler == built.compiler) continue;
        built.reasons = facts.reasons + fmt::format("# {}: {}\n", date, reason);
        write_facts(built, folder, ArchName(arch));
    }
    return sentences;
}

} // namespace fmha::generator
