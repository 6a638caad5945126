#pragma once

#include "harness/results/journal.hpp"
#include "harness/results/ledger.hpp"
#include "harness/run/case_runner.hpp"
#include "harness/run/interrupt.hpp"
#include "harness/run/targets.hpp"

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace fmha::harness {

struct RunOptions {
    CaseRunOptions of_case{};
    int jobs = 1;                    ///< worker processes; 0 = everything in this process
    std::chrono::seconds timeout{0}; ///< of one case in a worker; 0 = none
    LedgerRules rules{};             ///< by which the run is judged
    bool fail_fast = false;          ///< the run ends with the first case that makes it red
    std::function<void(const std::string& name)> on_case{}; ///< told as each case starts (jobs 0) or ends
    /// Gets the results of each case as soon as they are there, those of the journal first.
    std::function<void(const std::string& name, std::span<const CaseResult> results)> on_results{};
    /// Told in a sentence when a device gets no more cases, because it cannot be opened any more.
    std::function<void(const std::string& sentence)> on_device_lost{};
};

/// The results of all `cases`, in their order, as the entries of --waivers judge them, however the cases are shared among processes. Processes are dealt out to the
/// devices of `target` in turns, and each takes the next case when it is free. A device that cannot be opened three times running
/// gets no more cases; those that no device is left for have a result that says so. A case that was not
/// finished when `interrupt` came has a result that says so. With a `journal`, cases that it holds are not run again, and
/// those that are run are appended to it; not appended is a case whose worker was killed from outside or for which there
/// was no memory or no device, because that settles nothing about the kernel.
std::vector<CaseResult> run_cases(const std::vector<Case>& cases, const KernelSource& source,
                                  const Target& target, const RunOptions& options,
                                  const InterruptWatch& interrupt, Journal* journal = nullptr);

} // namespace fmha::harness
