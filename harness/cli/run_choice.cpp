#include "harness/cli/run_choice.hpp"

#include "dispatcher/system/parallel.hpp"
#include "dispatcher/types/error.hpp"
#include "harness/cli/cases_root.hpp"
#include "harness/cli/within.hpp"

#include <fmt/format.h>

namespace fmha::cli {
void RunChoice::declare(OptionSet& options) {
    target_.declare(options);
    options.choice("--kernels", kernels_, {"planned", "all"},
                   "The planned kernel, or every kernel that accepts the problem");
    options.option("--kernel", kernel_filter_,
                   "With --kernels all: only kernels whose name matches this glob");
    options.option("--where,--filter", where_,
                   "Python expression over a kernel c: only kernels for which it is true");
    options.option("--repeats,--repeat", repeats_,
                   "Launches of every kernel that must agree bit for bit; 0: as the case says");
    options.option("--warmup", warm_up_, "Number of further launches, which are judged like the others");
    options.option("--timeout", timeout_, "Seconds after which one case is given up; 0: never");
    memory_.declare(options, "not run");
    declare_cases_root(options, root_);
}

void RunChoice::declare_devices(OptionSet& options) {
    options.option(
        "--devices", devices_,
        "With --target hip: all, or numbers such as 0,2: these devices share the cases, each takes "
        "the next one when it is free");
}

void RunChoice::check(const CatalogueChoice* lists) const {
    require_within("--repeats", repeats_);
    require_within("--warmup", warm_up_);
    target_.check();
    require_within("--timeout", timeout_);
    memory_.check();
    const bool all = kernels_ == "all" || (lists != nullptr && lists->on());
    if (!kernel_filter_.empty() && !all)
        throw InputError(lists == nullptr ? "--kernel needs --kernels all"
                                          : "--kernel needs --kernels all or --catalogue");
}

std::shared_ptr<const harness::Target> RunChoice::target(int jobs) const {
    harness::TargetOptions options = target_.options();
    options.devices = devices_;
    options.jobs = jobs;
    return harness::make_target(target_.name(), options);
}

harness::CaseRunOptions RunChoice::of_case(const harness::Target& target, int jobs) const {
    harness::CaseRunOptions run;
    run.arch = target.arch();
    run.given = {.target_flags = target.flags(),
                 .arch_dir = arch_files().folder(),
                 .cases_root = root_,
                 .where = where_};
    if (timeout_ != usual_timeout) run.given.timeout = timeout();
    if (!run.given.arch_dir.empty()) run.archs = target.archs();
    // Threads that the worker processes leave free help each of them with the reference.
    run.reference_threads = system::threads_of_each(jobs);
    run.all_kernels = kernels_ == "all";
    run.kernel_filter = kernel_filter_;
    run.repeats = static_cast<int>(repeats_);
    run.warm_up = static_cast<int>(warm_up_);
    run.memory_limit = memory_.bytes();
    run.work_limit = target.work_limit();
    return run;
}

std::filesystem::path RunChoice::root() const {
    return cases_root(root_);
}

std::chrono::seconds RunChoice::timeout() const {
    return std::chrono::seconds(timeout_);
}

} // namespace fmha::cli
