#pragma once

#include "harness/results/result.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fmha::harness {

/// The content that a green run may have.
struct LedgerRules {
    std::int64_t not_run_budget = 0; ///< how many results may be not_run, beside those that are waived
    bool strict = false;             ///< no result may be type_absent
    /// Kernels of a list are asked for: refusals alone are not what a run of them is for.
    bool of_list = false;
    /// Other shards have further results of the run: known failures may be all that this one has.
    bool of_shard = false;
};

/// The arithmetic of a run: asked = the sum over all outcomes, and green has to be earned.
class Ledger {
  public:
    explicit Ledger(LedgerRules rules = {}) : rules_(rules) {}

    void add(const CaseResult& result);

    std::int64_t asked() const { return asked_; }
    std::int64_t count(Outcome outcome) const { return counts_[static_cast<std::size_t>(outcome)]; }
    /// Results for which a kernel ran, or should have.
    std::int64_t executed() const;
    std::int64_t distinct_kernels() const { return static_cast<std::int64_t>(kernels_.size()); }

    /// The run was stopped before every result was there.
    bool interrupted() const { return reasons_.contains(NotRunReason::interrupted); }

    /// Something is in it that no further result makes up for.
    bool red() const;

    /// Not red, and something was executed that is not known to fail, or refusals were all that was asked for, or what is known to be
    /// bad was all that a shard had.
    bool green() const { return !red() && !is_empty(); }

    /// A reason beside the results that makes the run red: a sentence.
    void object(std::string sentence) { objections_.push_back(std::move(sentence)); }

    /// The ledger in a few lines: one a reason for which something was not run, with an example. The last one is the verdict.
    std::string text() const;

    /// Why the run is red where no failure says it, with the budget that would make it green: sentences.
    std::vector<std::string> complaints() const;

    /// "GREEN", "RED", or "RED: " and a complaint, a line each.
    std::string verdict() const;

  private:
    bool failed() const;
    bool of_refusals_alone() const;
    bool of_known_alone() const;
    /// Nothing in it could have been green by itself.
    bool is_empty() const {
        return executed() == count(Outcome::failed_as_known) && !of_refusals_alone() &&
               !(rules_.of_shard && of_known_alone());
    }
    std::int64_t within_budget() const;

    LedgerRules rules_;
    std::vector<std::string> objections_;
    std::int64_t asked_ = 0;
    std::array<std::int64_t, EnumTable<Outcome>::names.size()> counts_{};
    struct Group {
        std::int64_t count = 0;
        std::string example; ///< name and message of the first

        void add(const CaseResult& result);
    };
    std::map<NotRunReason, Group> reasons_;
    std::map<std::string, Group> known_; ///< failures by tracker
    std::string absent_example_;         ///< name and message of the first of an absent type
    std::set<std::string> kernels_;      ///< of which something was run
};

/// How many results each of `devices` has, and how many of them are not green, a line each.
std::vector<std::string> shares_of_devices(std::span<const CaseResult> results, std::span<const int> devices);

} // namespace fmha::harness
