#pragma once

#include "harness/run/case_runner.hpp"
#include "harness/shrink/shrink.hpp"

#include <chrono>
#include <functional>

namespace fmha::harness {

/// Runs every case in a process of its own, so that one that crashes or hangs is a result too. `timeout`: of a case; 0 = none. A case
/// during which `stop` says true has no result.
/// Its references must outlive it. Call it before this process starts threads.
CaseJudge isolated_judge(const KernelSource& source, const CaseRunOptions& options,
                         std::chrono::milliseconds timeout, std::function<bool()> stop = {});

} // namespace fmha::harness
