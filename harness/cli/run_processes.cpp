#include "harness/cli/run_processes.hpp"

#include "dispatcher/types/error.hpp"
#include "harness/run/run_cases.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace fmha::cli {

void RunProcesses::declare(OptionSet& options) {
    options.option(
        "--jobs,--workers", jobs_,
        "Processes at a time; 0 runs everything in this process (default: one a hardware thread, or "
        "one a device)");
}

// More processes than cases would leave threads idle that the processes at work could use.
int RunProcesses::number(std::size_t cases) {
    const std::int64_t most = std::max<std::int64_t>(1, static_cast<std::int64_t>(cases));
    if (!run_.devices().empty()) return static_cast<int>(std::min(of_devices(), most));
    if (!jobs_) return harness::default_jobs(run_.target_name(), cases);
    return static_cast<int>(std::min(*jobs_, most));
}

/// One a device, unless the user asks for more.
std::int64_t RunProcesses::of_devices() {
    const auto devices = static_cast<std::int64_t>(target(1)->devices().size());
    if (jobs_.value_or(devices) < devices)
        throw InputError(fmt::format("--jobs {}: {} device{} need a process each; allowed: {} or more",
                                     *jobs_, devices, devices == 1 ? "" : "s", devices));
    return jobs_.value_or(devices);
}

// Made when something asks for it first, because it may need a device, and again for another number of jobs that share
// the processor.
std::shared_ptr<const harness::Target> RunProcesses::target(int jobs) {
    if (!made_ || (made_for_jobs_ != jobs && made_->devices().empty())) made_ = run_.target(jobs);
    made_for_jobs_ = jobs;
    return made_;
}

std::string RunProcesses::arch() {
    constexpr std::size_t many = 1'000'000; // nobody knows yet how many cases there are
    return run_.arch().empty() ? target(number(many))->arch() : run_.arch();
}

} // namespace fmha::cli
