#pragma once

#include "harness/results/result.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace fmha::reports {

/// Red results of one kind: they failed the same gate first, or ended the same way, on the same kernel.
struct Cause {
    std::int64_t results = 0;
    std::string what; ///< "G1 o", or the outcome where no gate failed
    std::string kernel;
    std::string first; ///< name of its first case
};

/// The gate and output that a red result failed first, or its outcome.
std::string failed_by(const harness::CaseResult& result);

/// Most results first.
std::vector<Cause> causes_of(const std::vector<harness::CaseResult>& results);

/// A table of them for the page, and lines for a terminal. Empty when nothing is red twice.
std::string causes_section(const std::vector<harness::CaseResult>& results);
std::string causes_text(const std::vector<harness::CaseResult>& results);

} // namespace fmha::reports
