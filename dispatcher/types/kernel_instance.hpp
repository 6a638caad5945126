#pragma once

#include "dispatcher/types/args.hpp"
#include "dispatcher/types/kernel_config.hpp"
#include "dispatcher/types/problem.hpp"

#include <string>
#include <variant>

namespace fmha {

/// The arguments of a call, one alternative an API: all stages of a plan get the same.
using Invocation =
    std::variant<std::monostate, FwdArgs, SplitKvArgs, PagedKvArgs, AppendKvArgs, BatchPrefillArgs, BwdArgs>;

/// A stream of the target's runtime; the host target ignores it.
struct Stream {
    void* handle = nullptr;
};

/// A kernel that can be launched: a configuration bound to a target. Const operations are safe to call
/// concurrently; launches on different streams too, as long as their tensors do not overlap.
class KernelInstance {
  public:
    virtual ~KernelInstance() = default;
    virtual const KernelConfig& config() const = 0;
    virtual std::string name() const = 0;
    /// Throws ArgumentTypeError for another family's arguments, UnsupportedInvocation or DeviceError.
    virtual void launch(const Invocation& invocation, Stream stream) const = 0;
};

} // namespace fmha
