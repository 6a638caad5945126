#pragma once

#include "harness/run/run_cases.hpp"
#include "harness/shrink/shrink.hpp"

#include <filesystem>
#include <span>

namespace fmha::harness {

/// How the red results of a run are made smaller.
struct ShrinkRed {
    std::int64_t most = 0;      ///< of them, in their order
    std::filesystem::path root; ///< of the case files, where the plain cases are
    ShrinkOptions options{};
};

/// Gives the first red results of `results` their smaller cases as text (CaseResult::smaller). `run`: the options with which
/// `cases` gave these results.
void shrink_red(std::vector<CaseResult>& results, std::span<const Case> cases, const KernelSource& source,
                const RunOptions& run, const ShrinkRed& red);

} // namespace fmha::harness
