#include "parity/golden_audit.hpp"

#include "dispatcher/system/parallel.hpp"
#include "dispatcher/types/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace fmha::parity {
namespace {

using catalog::RuleSet;
using Subject = std::pair<RuleSet, ArchName>;

bool in_scope(const GoldenScope& scope, const Subject& subject) {
    const auto named = [](const auto& list, const auto& value) {
        return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
    };
    if (subject.first == RuleSet::sweep && !scope.with_sweep && scope.rules.empty()) return false;
    return named(scope.rules, subject.first) && named(scope.archs, subject.second);
}

std::vector<Subject> subjects(const arch::ArchSet& archs, const std::filesystem::path& directory,
                              const GoldenScope& scope, bool with_files) {
    std::vector<Subject> all;
    for (const auto& [rules, unused] : EnumTable<RuleSet>::names)
        for (const arch::ArchTables& arch : archs.all())
            if (has_rules(arch, rules)) all.emplace_back(rules, arch.name());
    if (with_files)
        for (const Subject& subject : golden_files(directory)) all.push_back(subject);
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    std::erase_if(all, [&](const Subject& subject) { return !in_scope(scope, subject); });
    return all;
}

std::string subject_text(const Subject& subject) {
    return fmt::format("{} {}", to_string(subject.first), subject.second.view());
}

/// One sentence for every distinct change of a family, with the profiles that it concerns.
std::vector<std::string> changed_lists(const Facts& before, const Facts& after) {
    using Change = std::tuple<catalog::MaskVocabulary, KernelFamily, std::string>;
    std::map<Change, std::string> profiles_of;
    const auto note = [&](const FactKey& key, std::string what) {
        auto& profiles = profiles_of[{key.masks, key.family, std::move(what)}];
        if (!profiles.empty()) profiles += ", ";
        profiles += to_string(key.profile);
    };
    for (const auto& [key, old_fact] : before.lists) {
        const auto now = after.lists.find(key);
        if (now == after.lists.end()) {
            note(key, fmt::format("{} kernels, now no such list", old_fact.kernels));
        } else if (now->second != old_fact) {
            const Fact& fact = now->second;
            if (fact.kernels != old_fact.kernels)
                note(key, fmt::format("{} -> {} kernels", old_fact.kernels, fact.kernels));
            else if (fact.sorted == old_fact.sorted)
                note(key, fmt::format("the same {} kernels in another order", fact.kernels));
            else
                note(key, fmt::format("{} kernels as before, with other names", fact.kernels));
        }
    }
    for (const auto& [key, fact] : after.lists)
        if (!before.lists.contains(key)) note(key, fmt::format("a new list of {} kernels", fact.kernels));

    std::vector<std::string> sentences;
    sentences.reserve(profiles_of.size());
    for (const auto& [change, profiles] : profiles_of)
        sentences.push_back(fmt::format("{}, {} masks: {} (in {})", to_string(std::get<1>(change)),
                                        to_string(std::get<0>(change)), std::get<2>(change), profiles));
    return sentences;
}

/// Every key whose number differs between two maps, with both numbers; absent counts as 0.
template <class Key, class Sentence>
std::vector<std::string> changed_numbers(const std::map<Key, std::int64_t>& before,
                                         const std::map<Key, std::int64_t>& after, const Sentence& sentence) {
    std::vector<std::string> sentences;
    auto keys = before;
    keys.insert(after.begin(), after.end());
    const auto number = [](const auto& map, const Key& key) {
        const auto found = map.find(key);
        return found == map.end() ? 0 : found->second;
    };
    for (const auto& [key, unused] : keys)
        if (number(before, key) != number(after, key))
            sentences.push_back(sentence(key, number(before, key), number(after, key)));
    return sentences;
}

std::vector<std::string> changed_violations(const Facts& before, const Facts& after) {
    return changed_numbers(
        before.violations, after.violations, [](const std::string& rule, std::int64_t was, std::int64_t is) {
            return fmt::format("{}: {} records break this validation rule, it was {}", rule, is, was);
        });
}

std::vector<std::string> changed_values(const Facts& before, const Facts& after) {
    return changed_numbers(
        before.values, after.values, [](const ValueKey& key, std::int64_t was, std::int64_t is) {
            return fmt::format("{}, {} {}: {} -> {} records", to_string(key.family), key.column,
                               key.value.empty() ? "(none)" : key.value, was, is);
        });
}

std::int64_t change_count(const Facts& before, const Facts& after) {
    auto changes = static_cast<std::int64_t>(changed_violations(before, after).size() +
                                             changed_values(before, after).size());
    for (const auto& [key, fact] : after.lists) {
        const auto old_fact = before.lists.find(key);
        if (old_fact == before.lists.end() || old_fact->second != fact) ++changes;
    }
    for (const auto& [key, fact] : before.lists)
        if (!after.lists.contains(key)) ++changes;
    return changes;
}

Check audit_subject(const arch::ArchSet& archs, const std::filesystem::path& directory,
                    const Subject& subject) {
    Check check;
    check.subject = subject_text(subject);
    check.unit = "facts";
    const auto& [rules, arch] = subject;
    const auto golden = read_golden(directory, rules, arch);
    if (!golden) {
        check.failures.push_back("there are no golden facts; record them with --accept --reason \"…\"");
        return check;
    }
    const auto* tables = archs.find(arch.view());
    if (tables == nullptr || !has_rules(*tables, rules)) {
        check.failures.push_back(
            fmt::format("the golden file has {} kernels, but no architecture file has this rule set",
                        golden->names.size()));
        return check;
    }
    const Facts now = collect_facts(archs, rules, arch);
    check.compared = static_cast<std::int64_t>(golden->facts.lists.size() + golden->facts.violations.size() +
                                               golden->facts.values.size());
    const auto widest = keeps_names(rules) ? catalog::ProfileId::all : catalog::ProfileId::ck_default;
    for (const auto& [key, fact] : now.lists)
        if (key.masks == catalog::MaskVocabulary::simplified && key.profile == widest)
            check.counts[std::string(to_string(key.family))] = fact.kernels;
    check.failures = changed_lists(golden->facts, now);
    const auto add = [&](std::vector<std::string> sentences) {
        std::move(sentences.begin(), sentences.end(), std::back_inserter(check.failures));
    };
    add(changed_values(golden->facts, now));
    add(changed_violations(golden->facts, now));
    if (check.failures.empty() || !keeps_names(rules)) return check;

    const auto request = reference_request(rules, arch);
    check.difference = difference(golden->names, names_of(archs, request));
    const auto cause = [&](const std::string& name) { return cause_sentence(archs, request, name); };
    explain(*check.difference, cause, cause);
    return check;
}

} // namespace

bool has_rules(const arch::ArchTables& arch, RuleSet rules) {
    if (arch.has_rule_set(to_string(rules))) return true;
    return (rules == RuleSet::claim || rules == RuleSet::stored) && arch.has_rule_set("rules");
}

std::string cause_sentence(const arch::ArchSet& archs, const catalog::Request& request,
                           const std::string& name) {
    const catalog::Why why = catalog::why(archs, request, name);
    std::string text;
    for (const catalog::WhyStep& step : why.steps) {
        // A list has a name because of a table entry, and has it not because of the first thing that removes
        // it.
        if (why.listed ? step.kind != catalog::WhyStep::Kind::table : !step.removes) continue;
        if (!text.empty()) text += "; ";
        text += step.id.empty() ? step.text : fmt::format("{}: {}", step.id, step.text);
        if (!why.listed) break;
    }
    if (!text.empty()) return text;
    return why.listed ? "the list has it" : "no table entry produces it";
}

AuditReport audit_golden(const arch::ArchSet& archs, const std::filesystem::path& directory,
                         const GoldenScope& scope, const OnCheck& on_check) {
    AuditReport report;
    report.title = "golden audit";
    const auto all = subjects(archs, directory, scope, true);
    run_checks(report, all.size(), on_check,
               [&](std::size_t i) { return audit_subject(archs, directory, all[i]); });
    return report;
}

std::vector<std::string> accept_golden(const arch::ArchSet& archs, const std::filesystem::path& directory,
                                       const GoldenScope& scope, const std::string& reason,
                                       const std::string& date) {
    if (reason.find_first_not_of(" \t\n") == std::string::npos)
        throw InputError("--accept needs --reason \"…\": the golden files keep it");
    const auto all = subjects(archs, directory, scope, false);
    std::vector<std::string> sentences(all.size());
    system::parallel_for(all.size(), [&](std::size_t i) {
        const auto& [rules, arch] = all[i];
        GoldenFile golden = read_golden(directory, rules, arch).value_or(GoldenFile{});
        const Facts now = collect_facts(archs, rules, arch);
        const auto changes = change_count(golden.facts, now);
        sentences[i] = fmt::format("{}: {} facts changed", subject_text(all[i]), changes);
        if (changes == 0) return;
        golden.facts = now;
        golden.accepted.push_back({date, reason, changes});
        if (keeps_names(rules)) golden.names = names_of(archs, reference_request(rules, arch));
        write_golden(directory, golden);
    });
    return sentences;
}

} // namespace fmha::parity
