#pragma once

#include "harness/cli/run_choice.hpp"

namespace fmha::cli {

/// The processes of a run of cases, and the target that each of them has.
class RunProcesses {
  public:
    /// `run` outlives this.
    explicit RunProcesses(const RunChoice& run) : run_(run) {}

    void declare(OptionSet& options);

    std::optional<std::int64_t> asked() const { return jobs_; }
    /// How many there are for so many cases. Throws InputError where devices need more than --jobs has.
    int number(std::size_t cases);
    /// The target with so many jobs.
    std::shared_ptr<const harness::Target> target(int jobs);
    /// The architecture of the cases.
    std::string arch();

  private:
    std::int64_t of_devices();

    const RunChoice& run_;
    std::optional<std::int64_t> jobs_;
    std::shared_ptr<const harness::Target> made_;
    int made_for_jobs_ = 0;
};

} // namespace fmha::cli
