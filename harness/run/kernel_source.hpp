#pragma once

#include "dispatcher/selection/verdict.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/kernel_instance.hpp"
#include "dispatcher/types/numerics.hpp"
#include "dispatcher/types/problem.hpp"
#include "reference/rows.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fmha::harness {

class TensorSet;

/// Launches kernels whose pointers are not the host's.
class Launcher {
  public:
    virtual ~Launcher() = default;
    /// One launch on tensors in host memory, which hold its results afterwards; `arguments` point into them. Returns the
    /// seconds of the kernel alone. Throws DeviceError.
    virtual double launch(const KernelInstance& kernel, const Invocation& arguments, TensorSet& tensors) = 0;
};

/// The kernel of one stage that can be launched, and how it declares to round.
struct StageKernel {
    std::string name;                               ///< of reports and filters
    std::shared_ptr<const KernelInstance> instance; ///< nullptr: `not_built` says why
    Numerics numerics;
    std::shared_ptr<Launcher> launcher{}; ///< nullptr: the instance takes pointers to host memory
    std::string not_built{};
    /// Computes only tiles of the output that have some of these rows, pointers being the host's; null where the target has no
    /// way to do so.
    std::function<void(const Invocation&, std::span<const reference::RowId>)> run_rows{};
    std::int64_t tile_heads =
        1; ///< of such a tile, at most; its first one is a multiple of this or of a divisor
};

/// No kernel of a source takes a problem. The text is the explanation.
class ProblemRefused : public NoKernelFound {
  public:
    /// `nearest`: the first condition that the nearest kernel fails; nullopt when there are no kernels at all.
    ProblemRefused(std::optional<Refusal> nearest, const std::string& explanation)
        : NoKernelFound(explanation), nearest_(std::move(nearest)) {}
    const std::optional<Refusal>& nearest() const { return nearest_; }

  private:
    std::optional<Refusal> nearest_;
};

/// The reason that a case expects by `text`: a Reason's name, or the field that decides, for "hdim_q", "hdim_v" and
/// "qscale". nullopt for anything else.
std::optional<Reason> parse_reason(std::string_view text);

/// Where the kernels under test come from: the dispatcher's plan on a catalogue, or a test's own. `problem.signature.family`
/// names the stage that is asked for; `main` is the kernel of the main stage, which other stages of its plan follow, and
/// nullptr for the main stage itself and for a stage that runs alone.
class KernelSource {
  public:
    virtual ~KernelSource() = default;
    /// The kernel that the dispatcher chooses. Throws ProblemRefused, PlanIncomplete, or
    /// UnsupportedInvocation when the target cannot execute the chosen kernel.
    virtual StageKernel planned(const Problem& problem, const KernelConfig* main) const = 0;
    /// Every kernel that accepts the problem and that the target executes, in the order of the catalogue.
    /// Throws ProblemRefused when there is none.
    virtual std::vector<StageKernel> accepting(const Problem& problem, const KernelConfig* main) const = 0;
    /// False when the architecture has no kernels of this type at all, so that finding none is expected (T-1).
    virtual bool has_type(DataType) const { return true; }
    /// The same of a family: upstream lists batch prefill for gfx9 only.
    virtual bool has_family(KernelFamily) const { return true; }
};

} // namespace fmha::harness
