#pragma once

#include "dispatcher/types/kernel_config.hpp"
#include "dispatcher/types/kernel_instance.hpp"
#include "kernels/targets/hip/emulated/baton.hpp"

#include <memory>
#include <optional>
#include <string>

/// Executes the HIP target's kernels on the processor, lane by lane: the same tile program, block context
/// and block plan as on a device, over an emulated machine. One compiled executor runs every configuration of every
/// architecture; `cannot_execute` of the HIP target says which of them it declines.
namespace fmha::hip_target {

/// Floating-point operations of a problem above which emulating it is no longer a matter of seconds.
inline constexpr double emulation_work_limit = 1e8;

struct EmulationOptions {
    int threads = 0;                ///< 0 = as many as the machine has; the result does not depend on it
    bool last_thread_first = false; ///< the other order of a block's threads
    Schedule schedule = Schedule::feed_first; ///< of the feed and the teams of a block
};

/// Runs the kernel `config` on its family's arguments (host pointers) and returns when it is done. Throws
/// - UnsupportedInvocation when the target does not execute the configuration, or the kernel no launch with the arguments;
/// - ArgumentTypeError when they are another family's;
/// - InputError for a null tensor that has elements;
/// - EmulationError, a DeviceError, when a block makes a mistake that a device would let pass in silence.
void emulate_kernel(const KernelConfig& config, const Invocation& invocation,
                    const EmulationOptions& options = {});

/// `config` as an instance that plans can execute, on `threads` threads of the processor (0 = as many as the machine has).
/// Its launches take turns in the order of a block's threads, so that a kernel whose threads race in global memory
/// differs from itself, and in schedules of its feed and teams. Throws UnsupportedInvocation when cannot_execute says so.
std::shared_ptr<const KernelInstance> make_emulated_instance(const KernelConfig& config, int threads = 0);

} // namespace fmha::hip_target
