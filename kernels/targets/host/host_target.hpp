#pragma once

#include "dispatcher/types/kernel_config.hpp"
#include "dispatcher/types/kernel_instance.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// Executes kernels on the processor: one compiled executor for every configuration, with that
/// configuration's tiling, padding behaviour and storage roundings.
namespace fmha::host_target {

/// One key tile that one block computed.
struct TileVisit {
    std::int64_t b = 0, h = 0, q_tile = 0, k_tile = 0;
    friend bool operator==(const TileVisit&, const TileVisit&) = default;
};

struct RunOptions {
    int threads = 0; ///< 0 = as many as the machine has; the result does not depend on it
    /// When given, receives every visited tile in the order (b, h, q_tile, visit).
    std::vector<TileVisit>* trace = nullptr;
};

/// nullopt when this target executes `config`; otherwise the reason, one sentence.
std::optional<std::string> cannot_execute(const KernelConfig& config);

/// Runs the kernel `config` on its family's arguments (host pointers) and returns when it is done. Throws
/// UnsupportedInvocation with the sentence of cannot_execute or targets::cannot_launch, and ArgumentTypeError when the
/// arguments are another family's, InputError for a null tensor that has elements. Without a padding flag the kernel assumes
/// whole tiles on that axis: loads past the end repeat the last element, and rows or channels of an incomplete tile are not
/// stored, so a ragged extent gives wrong results but touches no memory outside the tensor.
void run_kernel(const KernelConfig& config, const Invocation& invocation, const RunOptions& options = {});

/// `config` as an instance that plans can execute, on `threads` threads (0 = as many as the machine has). Throws
/// UnsupportedInvocation when cannot_execute says so.
std::shared_ptr<const KernelInstance> make_instance(const KernelConfig& config, int threads = 0);

} // namespace fmha::host_target
