#pragma once

#include "dispatcher/types/args.hpp"
#include "dispatcher/types/kernel_config.hpp"
#include "kernels/targets/fault.hpp"
#include "kernels/targets/host/host_target.hpp"

#include <span>
#include <string_view>

/// Known mistakes, put into the forward program on purpose. For tests that show that the gates can fail;
/// nothing that a user runs links this library.
namespace fmha::host_target {

using targets::Fault;

struct FaultInfo {
    Fault fault;
    std::string_view says;  ///< the kernel's mistake
    std::string_view needs; ///< the features without which the fault changes nothing
};

/// Every fault once, in order of declaration.
std::span<const FaultInfo> fault_catalogue();

/// `run_kernel` with one mistake in the kernel. `write_past_end` writes the element behind the last logical one
/// of O, which must be the caller's memory (stride padding or a guard zone).
void run_fwd_with_fault(const KernelConfig& config, const FwdArgs& args, Fault fault,
                        const RunOptions& options = {});

} // namespace fmha::host_target
