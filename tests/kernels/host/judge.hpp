#pragma once

#include "dispatcher/types/numerics.hpp"
#include "fwd_problem.hpp"
#include "reference/forward.hpp"

#include <string>

namespace fmha::host_target::test {

/// How far the outputs of `problem` are from the binary64 reference, in units of the limits of tolerances B.2
/// and B.4 for a kernel of `config`. A correct kernel stays at or below 1.
struct Distance {
    double o = 0.0, lse = 0.0;
    double rms = 0.0; ///< of O, in units of the predicted one (B.3)
    double rms_limit = 1.25;
    bool random_bytes_agree = true;
    bool only_logical_elements_written = true;
    std::string worst;

    bool acceptable() const {
        return o <= 1.0 && lse <= 1.0 && rms <= rms_limit && random_bytes_agree &&
               only_logical_elements_written;
    }
    /// Empty when acceptable. LSE counts where the kernel has one.
    std::string complaint(bool has_lse) const;
};

Distance judge(const FwdProblem& problem, const KernelConfig& config);
/// The same for a kernel of any target.
Distance judge(const FwdProblem& problem, const Numerics& numerics);
/// The same with a result of the reference for all rows.
Distance judge(const FwdProblem& problem, const reference::ForwardRows& expected);

} // namespace fmha::host_target::test
