#include "harness/catalogue/catalogue_ledger.hpp"

#include "dispatcher/types/error.hpp"
#include "dispatcher/types/text_table.hpp"
#include "dispatcher/types/visible_text.hpp"
#include "harness/results/first_line.hpp"
#include "harness/results/kernel_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace fmha::harness {
namespace {

/// Names that a text for people shows before it says how many more there are.
constexpr std::size_t most_names = 10;

Account account_of(Outcome outcome) {
    switch (outcome) {
    case Outcome::passed:
        return Account::green;
    case Outcome::refused_as_predicted:
        return Account::refused;
    case Outcome::not_run:
    case Outcome::type_absent:
    case Outcome::failed_as_known:
        return Account::listed;
    default:
        return Account::red;
    }
}

constexpr std::array accounts{Account::green, Account::refused, Account::listed,
                              Account::red,   Account::missing, Account::elsewhere};

} // namespace

CatalogueLedger::CatalogueLedger(std::span<const ListedKernel> list, std::span<const Witness> all,
                                 std::span<const Witness> asked)
    : list_(list), accounts_(list.size()) {
    for (const Witness& witness : all)
        for (const std::size_t kernel : witness.kernels) accounts_.at(kernel).account = Account::elsewhere;
    for (const Witness& witness : asked) {
        witnesses_.emplace(witness.of.id, witness);
        for (const std::size_t kernel : witness.kernels) accounts_.at(kernel).account = Account::missing;
    }
}

void CatalogueLedger::settle(std::size_t kernel, Account account, const std::string& reason, bool final) {
    KernelAccount& own = accounts_[kernel];
    if (!final && own.account != Account::missing) return;
    if (own.final) twice_.push_back(list_[kernel].name);
    own = {account, reason, final};
}

void CatalogueLedger::add(const CaseResult& result) {
    const auto found = witnesses_.find(result.name);
    if (found == witnesses_.end())
        throw Error(fmt::format("{}: no witness of this run has this name", result.name));
    const Witness& witness = found->second;
    const Account account = account_of(result.outcome);
    std::string reason;
    if (account == Account::refused)
        reason = witness.of.expect_rule;
    else if (result.outcome == Outcome::not_run)
        reason = fmt::format("{}: {}", to_string(result.not_run_reason), first_line(result.message));
    else if (result.outcome == Outcome::failed_as_known)
        reason = fmt::format("{}: {}", to_string(result.outcome), result.tracker);
    else if (account != Account::green)
        reason = fmt::format("{}: {}", to_string(result.outcome), first_line(result.message));
    const std::vector<std::string_view> stages = kernel_names(result.kernel);
    for (const std::size_t kernel : witness.kernels)
        if (stages.empty() || std::ranges::find(stages, list_[kernel].name) != stages.end())
            settle(kernel, account, reason, stages.empty() || result.chosen == list_[kernel].name);
}

std::int64_t CatalogueLedger::count(Account account) const {
    return std::ranges::count(accounts_, account, &KernelAccount::account);
}

bool CatalogueLedger::complete() const {
    std::int64_t sum = 0;
    for (const Account account : accounts) sum += count(account);
    return sum == static_cast<std::int64_t>(list_.size()) && count(Account::missing) == 0 &&
           count(Account::red) == 0 && twice_.empty();
}

void CatalogueLedger::object_to(Ledger& ledger) const {
    if (complete() || !ledger.green()) return;
    std::string what;
    for (const auto& [number, words] : {std::pair{count(Account::red), "red"},
                                        {count(Account::missing), "missing"},
                                        {static_cast<std::int64_t>(twice_.size()), "accounted for twice"}})
        if (number > 0) what += fmt::format("{}{} {}", what.empty() ? "" : ", ", number, words);
    ledger.object(fmt::format("kernels of the list: {}", what));
}

std::vector<std::string> CatalogueLedger::missing() const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < accounts_.size(); ++i)
        if (accounts_[i].account == Account::missing) names.push_back(list_[i].name);
    return names;
}

std::string CatalogueLedger::text() const {
    using Row = std::array<std::int64_t, accounts.size()>;
    std::map<KernelFamily, Row> rows;
    Row total{};
    std::map<std::pair<Account, std::string>, std::int64_t> reasons;
    for (std::size_t i = 0; i < accounts_.size(); ++i) {
        const auto column =
            static_cast<std::size_t>(std::ranges::find(accounts, accounts_[i].account) - accounts.begin());
        ++rows[list_[i].config.signature.family][column];
        ++total[column];
        if (accounts_[i].account == Account::refused || accounts_[i].account == Account::listed)
            ++reasons[{accounts_[i].account, accounts_[i].reason}];
    }
    std::vector<std::vector<std::string>> lines{{"kernels", "of list"}};
    for (const Account account : accounts) lines.front().emplace_back(to_string(account));
    const auto line = [&](std::string_view name, const Row& row) {
        std::int64_t sum = 0;
        for (const std::int64_t n : row) sum += n;
        auto& cells = lines.emplace_back(std::vector{std::string(name), fmt::to_string(sum)});
        for (const std::int64_t n : row) cells.push_back(fmt::to_string(n));
    };
    for (const auto& [family, row] : rows) line(to_string(family), row);
    line("total", total);
    std::string text = text_table(lines);
    for (const auto& [key, n] : reasons)
        text += fmt::format("{} {} by {}\n", n, to_string(key.first), visible_line(key.second));
    const auto names = [&](std::string_view what, const std::vector<std::string>& those) {
        for (std::size_t i = 0; i < std::min(those.size(), most_names); ++i)
            text += fmt::format("{}  {}\n", what, those[i]);
        if (those.size() > most_names)
            text += fmt::format("{}  … {} more\n", what, those.size() - most_names);
    };
    names("missing", missing());
    names("accounted for twice", twice_);
    return text;
}

std::string CatalogueLedger::lines() const {
    std::string lines;
    for (std::size_t i = 0; i < accounts_.size(); ++i)
        lines +=
            fmt::format("{}\t{}\t{}\n", list_[i].name, to_string(accounts_[i].account), accounts_[i].reason);
    return lines;
}

} // namespace fmha::harness
