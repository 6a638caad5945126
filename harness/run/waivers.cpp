#include "harness/run/waivers.hpp"

#include "harness/results/kernel_names.hpp"
#include "kernels/catalog/glob.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace fmha::harness {
namespace {

/// `pattern` as a glob of which `*` alone is special.
std::string glob_of(std::string_view pattern) {
    std::string glob;
    for (const char c : pattern) glob += c == '[' || c == '?' ? fmt::format("[{}]", c) : std::string(1, c);
    return glob;
}

/// Whether the name of one of `kernels` matches. None has a name before there are any.
bool has_kernel(const std::string& glob, std::string_view kernels) {
    return std::ranges::any_of(kernel_names(kernels),
                               [&](std::string_view name) { return catalog::glob_match(glob, name); });
}

bool is_about(const Waiver& waiver, const std::string& name, const std::string& kernels) {
    return means_case(waiver.cases, name) && (waiver.kernel.empty() || has_kernel(waiver.kernel, kernels));
}

/// "1234 (The last key is dropped.)"
std::string known_as(const Waiver& waiver) {
    return fmt::format("{} ({})", waiver.tracker, waiver.reason);
}

/// One result that an entry is about.
void apply(CaseResult& result, const Waiver& waiver) {
    switch (result.outcome) {
    case Outcome::failed:
        result.outcome = Outcome::failed_as_known;
        result.tracker = waiver.tracker;
        result.message = fmt::format("known as {}: {}", known_as(waiver), result.message);
        break;
    case Outcome::passed:
    case Outcome::refused_as_predicted:
        result.outcome = Outcome::passed_unexpectedly;
        result.tracker = waiver.tracker;
        result.message = fmt::format(
            "{}: the entry says that it fails, as {}; delete the entry, or narrow it to what fails",
            waiver.place, known_as(waiver));
        break;
    default:
        if (!is_green(result.outcome))
            result.message += fmt::format("; {}: the entry expects another end, {} as {}", waiver.place,
                                          to_string(waiver.expect), known_as(waiver));
    }
}

} // namespace

bool means_case(std::string_view pattern, std::string_view name) {
    // Most entries are of other files: a file of hundreds meets hundreds of thousands of names.
    if (!name.starts_with(pattern.substr(0, pattern.find('*')))) return false;
    const std::string glob = glob_of(pattern);
    if (catalog::glob_match(glob, name)) return true;
    for (std::size_t end = name.find_first_of("/[@"); end != std::string_view::npos;
         end = name.find_first_of("/[@", end + 1))
        if (catalog::glob_match(glob, name.substr(0, end))) return true;
    return false;
}

bool is_about(const Waiver& waiver, const CaseResult& result) {
    return is_about(waiver, result.name, result.kernel);
}

Waivers::Waivers(std::vector<Waiver> all, std::string_view arch, std::string_view target)
    : entries_(std::move(all)) {
    const auto holds = [](const std::vector<std::string>& names, std::string_view name) {
        return names.empty() || std::ranges::find(names, name) != names.end();
    };
    std::erase_if(entries_, [&](const Waiver& waiver) {
        return !holds(waiver.archs, arch) || !holds(waiver.targets, target);
    });
}

const Waiver* Waivers::forbids(const std::string& name, const std::string& kernels) const {
    const auto found = std::ranges::find_if(entries_, [&](const Waiver& waiver) {
        return waiver.expect != KnownEnd::failed && is_about(waiver, name, kernels);
    });
    return found == entries_.end() ? nullptr : &*found;
}

void Waivers::judge(std::vector<CaseResult>& results) const {
    for (CaseResult& result : results) {
        const auto found = std::ranges::find_if(
            entries_, [&](const Waiver& waiver) { return harness::is_about(waiver, result); });
        if (found != entries_.end()) apply(result, *found);
    }
}

CaseResult waived_result(CaseResult blank, const Waiver& waiver) {
    blank.not_run_reason = NotRunReason::waived;
    blank.tracker = waiver.tracker;
    blank.message = fmt::format("not launched, because of a known {}: {}",
                                waiver.expect == KnownEnd::crashed ? "crash" : "hang", known_as(waiver));
    return blank;
}

} // namespace fmha::harness
