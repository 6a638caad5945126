#pragma once

#include "dispatcher/types/args.hpp"
#include "dispatcher/types/kernel_config.hpp"
#include "dispatcher/types/problem.hpp"

#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace fmha {

/// The arguments of a call, one alternative an API: all stages of a plan get the same.
#define FMHA_ALTERNATIVE(name, Args, ...) , Args
using Invocation = std::variant<std::monostate FMHA_API_FAMILIES(FMHA_ALTERNATIVE)>;
#undef FMHA_ALTERNATIVE

/// A stream of the target's runtime; the host target ignores it.
struct Stream {
    void* handle = nullptr;
};

/// Times passes of work on one stream. A pass lies between `start` and `stop`, which need not wait for the stream.
class PassClock {
  public:
    virtual ~PassClock() = default;
    virtual void start() = 0;
    virtual void stop() = 0;
    /// Seconds of every pass since the last call, in order, once the last of them is done. Throws DeviceError.
    virtual std::vector<double> take_seconds() = 0;
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
    /// The clock for launches that return before they are done. Null: a launch is done when it returns.
    virtual std::unique_ptr<PassClock> clock(Stream) const { return nullptr; }
};

} // namespace fmha
