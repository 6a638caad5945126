#pragma once

#include "harness/catalogue/witness.hpp"
#include "harness/results/ledger.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace fmha::harness {

/// The verdict of a run on a kernel of a list.
enum class Account : std::uint8_t {
    missing, ///< nothing
    green,   ///< it ran, and no gate said no
    refused, ///< a rule forbids it, and the refusal named the rule that was predicted
    listed,  ///< it was not run, for a stated reason
    red,
    elsewhere, ///< another shard or filter has it
};

/// Accounts for every kernel of a list by name.
class CatalogueLedger {
  public:
    /// `asked`: the witnesses of this run, among `all` of the list, which must outlive it.
    CatalogueLedger(std::span<const ListedKernel> list, std::span<const Witness> all,
                    std::span<const Witness> asked);

    /// Throws Error for a result of no witness that was asked for.
    void add(const CaseResult& result);

    std::int64_t count(Account account) const;
    /// Every kernel has one account, and none is missing or red; nothing was said twice.
    bool complete() const;
    /// Makes a run red whose results say nothing against it though the account is not complete.
    void object_to(Ledger& ledger) const;
    /// Names of kernels that no result speaks of.
    std::vector<std::string> missing() const;

    /// A table by family, the rules and reasons with their numbers, and the kernels that make it incomplete.
    std::string text() const;
    /// "name<tab>account<tab>rule or reason", a line a kernel, in the order of the list.
    std::string lines() const;

  private:
    struct KernelAccount {
        Account account = Account::missing;
        std::string reason; ///< rule, reason or sentence
        bool final = false; ///< a result is about it, and not about another one that it was planned around
    };
    void settle(std::size_t kernel, Account account, const std::string& reason, bool final);

    std::span<const ListedKernel> list_;
    std::map<std::string, Witness> witnesses_; ///< asked for, by case name
    std::vector<KernelAccount> accounts_;      ///< by position in the list
    std::vector<std::string> twice_;           ///< kernels of which two results speak
};

} // namespace fmha::harness

namespace fmha {

template <>
struct EnumTable<harness::Account> {
    using enum harness::Account;
    static constexpr std::array<EnumName<harness::Account>, 6> names{{{missing, "missing"},
                                                                      {green, "green"},
                                                                      {refused, "refused"},
                                                                      {listed, "listed"},
                                                                      {red, "red"},
                                                                      {elsewhere, "elsewhere"}}};
    static constexpr auto& aliases = no_aliases<harness::Account>;
};

} // namespace fmha
