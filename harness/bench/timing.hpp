#pragma once

#include "harness/data/tensor_set.hpp"
#include "harness/run/targets.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace fmha::harness {

/// Median, quartiles and the shortest of some times, in seconds.
struct Spread {
    double median = 0.0, low = 0.0, high = 0.0;
    std::int64_t samples = 0;
    double best = 0.0;
};

/// Zeros for no times.
Spread spread_of(std::vector<double> seconds);

/// The best rate of a machine in the same run, or the reason why it is not known.
struct Ceiling {
    double value = 0.0; ///< FLOP/s or bytes/s; 0 when unknown
    std::string how;    ///< the work that was timed, or the reason
    bool known() const { return value > 0.0; }
};

/// The arguments that the kernels of a case are timed with.
struct TimedCase {
    std::vector<StageKernel> stages; ///< in launch order
    Invocation arguments;            ///< of all stages; they point into `tensors`
    TensorSet& tensors;              ///< must outlive the timed launches
    /// The part of the tensors that is cleared before the first stage, in its time.
    std::span<unsigned char> cleared = {};
};

/// The kernels of a case's stages with its tensors, on a device in several places, so that a launch does not find the last one's
/// data in a cache. Outputs are those of the first place.
class TimedKernel {
  public:
    virtual ~TimedKernel() = default;
    /// Places that the launches go round.
    virtual std::int64_t places() const = 0;
    /// The parts of a launch: clearing of memory where the case has it, and the stages.
    const std::vector<std::string>& parts() const { return parts_; }
    /// Seconds of each of `launches` launches of all parts, one place after the other, beginning with the first.
    std::vector<double> time(std::int64_t launches) { return time_parts(0, parts_.size(), launches); }
    /// The same of the parts [first, end) alone. Other parts' results are those of earlier launches.
    virtual std::vector<double> time_parts(std::size_t first, std::size_t end, std::int64_t launches) = 0;
    /// Brings the outputs, as the last launch left them, into the case's own tensors.
    virtual void fetch() = 0;
    /// Takes the case's own tensors, as they are now, to the first place.
    virtual void restore() = 0;

  protected:
    explicit TimedKernel(const TimedCase& timed);
    /// The stage that part `part` launches; nullptr for clearing.
    const StageKernel* stage_of(std::size_t part) const {
        return part < clearings_ ? nullptr : &stages_[part - clearings_];
    }

  private:
    std::vector<StageKernel> stages_;
    std::vector<std::string> parts_;
    std::size_t clearings_; ///< parts before the first stage
};

/// A target on which kernels can be timed.
class TimingTarget {
  public:
    virtual ~TimingTarget() = default;
    virtual const std::shared_ptr<const Target>& target() const = 0;
    /// The processor or device, in words.
    virtual std::string machine() const = 0;
    /// All stages are built. Throws the errors of a launch.
    virtual std::unique_ptr<TimedKernel> prepare(const TimedCase& timed) = 0;
    /// Of products in the type that this target multiplies for `type`; measured once.
    virtual Ceiling matrix_ceiling(DataType type) = 0;
    /// Of copies; bytes read and bytes written both count. Measured once.
    virtual Ceiling copy_ceiling() = 0;
};

/// How many places of `bytes` exceed twice a cache; 2 to 1024.
std::int64_t places_beyond(std::int64_t cache_bytes, std::int64_t bytes);

/// The timing side of the target `name` (`target_names`). Throws InputError like `make_target`.
std::unique_ptr<TimingTarget> make_timing_target(const std::string& name, const TargetOptions& options);

std::unique_ptr<TimingTarget> time_on_host(const TargetOptions& options);
std::unique_ptr<TimingTarget> time_on_hip(const TargetOptions& options);

} // namespace fmha::harness
