#include "harness/results/ledger.hpp"

#include "dispatcher/types/visible_text.hpp"
#include "harness/results/counted.hpp"
#include "harness/results/first_line.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace fmha::harness {
namespace {

std::string not_run_words(std::int64_t number) {
    return fmt::format("{} {} not run", number, number == 1 ? "was" : "were");
}

} // namespace

void Ledger::Group::add(const CaseResult& result) {
    if (++count == 1) example = fmt::format("{}: {}", result.name, first_line(result.message));
}

void Ledger::add(const CaseResult& result) {
    ++asked_;
    ++counts_[static_cast<std::size_t>(result.outcome)];
    if (result.outcome == Outcome::not_run) reasons_[result.not_run_reason].add(result);
    if (result.outcome == Outcome::failed_as_known) known_[result.tracker].add(result);
    if (result.outcome == Outcome::type_absent && absent_example_.empty())
        absent_example_ = fmt::format("{}: {}", result.name, result.message);
    if (!result.kernel.empty() && result.outcome != Outcome::not_run) kernels_.insert(result.kernel);
}

bool Ledger::failed() const {
    for (const auto& entry : EnumTable<Outcome>::names)
        if (!is_green(entry.value) && count(entry.value) > 0) return true;
    return false;
}

std::int64_t Ledger::executed() const {
    std::int64_t sum = 0;
    for (const auto& entry : EnumTable<Outcome>::names)
        if (is_executed(entry.value)) sum += count(entry.value);
    return sum;
}

bool Ledger::of_refusals_alone() const {
    return !rules_.of_list && asked_ > 0 && count(Outcome::refused_as_predicted) == asked_;
}

/// Whether nothing was executed but what is known to fail, and something is known to fail, crash or hang.
bool Ledger::of_known_alone() const {
    return executed() == count(Outcome::failed_as_known) &&
           (executed() > 0 || reasons_.contains(NotRunReason::waived));
}

/// Results that were not run and that nobody has listed one by one.
std::int64_t Ledger::within_budget() const {
    const auto waived = reasons_.find(NotRunReason::waived);
    return count(Outcome::not_run) - (waived == reasons_.end() ? 0 : waived->second.count);
}

bool Ledger::red() const {
    return failed() || !objections_.empty() || reasons_.contains(NotRunReason::none) || interrupted() ||
           within_budget() > rules_.not_run_budget || (rules_.strict && count(Outcome::type_absent) > 0);
}

std::string Ledger::text() const {
    std::string line = fmt::format("{} asked", asked_);
    for (const auto& [outcome, unused] : EnumTable<Outcome>::names) {
        // The rare outcomes appear only when they happened.
        const bool always = outcome == Outcome::passed || outcome == Outcome::failed ||
                            outcome == Outcome::refused_as_predicted || outcome == Outcome::not_run;
        if (!always && count(outcome) == 0) continue;
        line += fmt::format("   {} {}", count(outcome), words_of(outcome));
    }
    line += '\n';
    for (const auto& [reason, results] : reasons_)
        line += fmt::format("not run because of {}: {}, for example {}\n", to_string(reason), results.count,
                            visible_line(results.example));
    for (const auto& [tracker, results] : known_)
        line += fmt::format("failed as known by {}: {}, for example {}\n", visible_line(tracker),
                            results.count, visible_line(results.example));
    if (const auto absent = count(Outcome::type_absent); absent > 0)
        line += fmt::format("type absent: {}, for example {}{}\n", absent, visible_line(absent_example_),
                            rules_.strict ? "" : "; --strict makes this red");
    if (rules_.of_shard && of_known_alone())
        line += "this shard has nothing but what is known to be bad: fmha merge judges the run\n";
    line += fmt::format("executed {}   kernels touched {}   budget for not run: {}\n", executed(),
                        distinct_kernels(), rules_.not_run_budget);
    return line + verdict() + "\n";
}

std::vector<std::string> Ledger::complaints() const {
    if (!objections_.empty()) {
        std::vector<std::string> lines;
        for (const std::string& objection : objections_) lines.push_back(visible_line(objection));
        return lines;
    }
    if (interrupted()) return {"interrupted"};
    if (const auto after = reasons_.find(NotRunReason::after_failure); after != reasons_.end())
        return {
            fmt::format("ended at the first red case, {} (--fail-fast)", not_run_words(after->second.count))};
    if (is_empty() && !failed())
        return {fmt::format("nothing was executed{}",
                            executed() > 0 ? ", apart from what is known to fail"
                            : rules_.of_list && count(Outcome::refused_as_predicted) == asked_ && asked_ > 0
                                ? ", every kernel that was asked for is refused"
                                : "")};
    if (const auto not_run = within_budget(); not_run > rules_.not_run_budget)
        return {fmt::format("{}, the budget is {}{}", not_run_words(not_run), rules_.not_run_budget,
                            failed() || reasons_.contains(NotRunReason::none)
                                ? ""
                                : fmt::format("; if that is as it should be: --not-run-budget {}", not_run))};
    if (rules_.strict && count(Outcome::type_absent) > 0 && !failed())
        return {fmt::format("{} of an absent type, and the run is strict (--strict)",
                            count(Outcome::type_absent))};
    return {};
}

std::string Ledger::verdict() const {
    std::vector<std::string> lines;
    for (const std::string& complaint : complaints()) lines.push_back("RED: " + complaint);
    if (lines.empty()) return green() ? "GREEN" : "RED";
    return fmt::format("{}", fmt::join(lines, "\n"));
}

std::vector<std::string> shares_of_devices(std::span<const CaseResult> results,
                                           std::span<const int> devices) {
    std::vector<std::string> lines;
    for (const int device : devices) {
        const auto is_here = [&](const CaseResult& result) { return result.device == device; };
        const auto is_red = [&](const CaseResult& result) {
            return is_here(result) && !is_green(result.outcome);
        };
        lines.push_back(
            fmt::format("device {}: {}, {} not green", device,
                        counted(static_cast<std::size_t>(std::ranges::count_if(results, is_here)), "result"),
                        std::ranges::count_if(results, is_red)));
    }
    return lines;
}

} // namespace fmha::harness
