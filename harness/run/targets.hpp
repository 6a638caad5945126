#pragma once

#include "harness/run/kernel_source.hpp"
#include "kernels/arch/arch.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fmha::harness {

/// The options of a command line for a target. Each target reads its own and refuses the rest.
struct TargetOptions {
    std::string arch;            ///< architecture whose catalogue is planned on; empty: the target's own
    std::string kernels_dir;     ///< folder of built kernels; empty: the target's usual one
    std::optional<int> device{}; ///< number of the device; absent: the first
    int jobs =
        1; ///< processes that launch kernels at a time and share the processor's threads; 0 and 1: this one alone
    /// How long a device may take to be found. A driver that hangs answers never.
    std::chrono::milliseconds device_patience = std::chrono::minutes(2);
    std::optional<arch::ArchSet> archs{}; ///< whose kernels are planned on; absent: those compiled in
    /// Several devices that share the cases, instead of `device`: "all", or their numbers, such as "0,2".
    std::string devices{};
};

/// Where kernels run: makes launchable kernels from configurations. Nothing that a device or a thread must do happens
/// before the first `make`, so that worker processes can be forked from a process that holds a target.
class Target {
  public:
    virtual ~Target() = default;
    virtual std::string_view name() const = 0;
    /// Architecture whose catalogue is planned on.
    virtual const std::string& arch() const = 0;
    /// The architectures that it was made with.
    virtual arch::ArchSet archs() const { return arch::ArchSet::built_in(); }
    /// Where kernels run, in words, for the head of a report: "" when it is the machine itself.
    virtual std::string description() const { return {}; }
    /// The version of the driver below it; "" without one.
    virtual std::string driver() const { return {}; }
    /// Options, each after a blank, that choose the same target again; "" when it is the default.
    virtual std::string flags() const { return {}; }
    /// Identifies the code of kernels and of their launches that comes from elsewhere than this program; "" when none does.
    virtual std::string kernel_build() const { return {}; }
    /// nullopt when this target has a way to execute `config`; otherwise the reason, one sentence.
    virtual std::optional<std::string> cannot_execute(const KernelConfig& config) const = 0;
    /// `config` as a kernel that takes pointers to host memory, with the arithmetic that it declares; the caller names
    /// it. Throws UnsupportedInvocation with the sentence of cannot_execute.
    virtual StageKernel make(const KernelConfig& config) const = 0;
    /// Whether kernels of forward have StageKernel::run_rows.
    virtual bool runs_row_tiles() const { return false; }
    /// Floating-point operations of both products above which a case is too much for this target; 0 = no limit.
    virtual double work_limit() const { return 0.0; }
    /// Numbers of the devices among which worker processes are dealt out; none when kernels run on the processor.
    virtual std::vector<int> devices() const { return {}; }
    /// The one of them that the worker of a place has; nullopt when kernels run on the processor.
    std::optional<int> device_of(std::size_t place) const;
    /// Like `flags`, with the device of this place alone.
    virtual std::string flags_of(std::size_t /*place*/) const { return flags(); }
    /// Opens the device of this place, on which this process's kernels run from then on. Once, before the first `make`;
    /// without it they run on the first device. Throws DeviceError when it cannot be opened.
    virtual void enter(std::size_t /*place*/) const {}
    /// True when this process can launch nothing more, because a kernel took the device's context with it.
    virtual bool spent() const { return false; }
};

/// Names of the targets, the default one first.
std::vector<std::string> target_names();

/// Worker processes for `cases` cases on a target when the user does not say: one a hardware thread, or one a device, and
/// never more than there are cases. Throws InputError for an unknown name.
int default_jobs(const std::string& name, std::size_t cases);

/// The set of architectures that `options` names.
arch::ArchSet archs_of(const TargetOptions& options);

/// Throws InputError for an unknown name, for options that the target does not take, and for a missing part
/// of the target (a device, built kernels), in a sentence.
std::shared_ptr<const Target> make_target(const std::string& name, const TargetOptions& options);

} // namespace fmha::harness
