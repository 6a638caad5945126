#pragma once

#include "harness/results/result.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <string>

namespace fmha::harness {

/// The arithmetic of a run: asked = the sum over all outcomes, and green has to be earned.
class Ledger {
  public:
    /// `not_run_budget`: how many results may be not_run in a green run.
    explicit Ledger(std::int64_t not_run_budget = 0) : not_run_budget_(not_run_budget) {}

    void add(const CaseResult& result);

    std::int64_t asked() const { return asked_; }
    std::int64_t count(Outcome outcome) const { return counts_[static_cast<std::size_t>(outcome)]; }
    /// Results for which a kernel ran or a refusal was checked.
    std::int64_t executed() const { return asked_ - count(Outcome::not_run); }
    std::int64_t distinct_kernels() const { return static_cast<std::int64_t>(kernels_.size()); }

    /// The run was stopped before every result was there.
    bool interrupted() const { return reasons_.contains(NotRunReason::interrupted); }

    /// Nothing failed, something was executed, nothing was interrupted, and what was not run is within its
    /// budget.
    bool green() const;

    /// The ledger in a few lines: one a reason for which something was not run, with an example. The last one says why the
    /// run is red when no failure does, and which budget would make it green.
    std::string text() const;

  private:
    bool failed() const;

    std::int64_t not_run_budget_;
    std::int64_t asked_ = 0;
    std::array<std::int64_t, 8> counts_{};
    struct NotRun {
        std::int64_t count = 0;
        std::string example; ///< name and message of the first
    };
    std::map<NotRunReason, NotRun> reasons_;
    std::map<std::string, std::int64_t> kernels_;
};

} // namespace fmha::harness
