#pragma once

#include "harness/data/fwd_tensors.hpp"
#include "harness/gates/outputs.hpp"
#include "harness/results/result.hpp"
#include "harness/run/kernel_source.hpp"

#include <vector>

namespace fmha::harness {

/// The same case with the same values in other places: heads and rows in the other order, rows farther apart. It is as
/// aligned as `c`, up to 32 elements, so that a kernel that takes the one takes the other.
FwdCase in_another_layout(const FwdCase& c);

/// Launches a kernel over differently poisoned memory, and in differently laid out memory, and compares what it wrote.
class FwdExecution {
  public:
    /// `elsewhere`: the same case in another layout; nullptr leaves G5.8 out.
    FwdExecution(FwdTensors& tensors, FwdTensors* elsewhere, const Candidate& candidate)
        : tensors_(tensors), elsewhere_(elsewhere), kernel_(*candidate.instance),
          launcher_(candidate.launcher.get()) {}

    /// The first run's outputs; gates G5.5 to G5.8 go into `gates`. `repeats` runs, and some more when they differ.
    Outputs run(int repeats, std::vector<GateVerdict>& gates, double& kernel_seconds);

  private:
    Outputs launch(FwdTensors& tensors, Poison poison, GateVerdict& stray, double& kernel_seconds);
    double launch_once(FwdTensors& tensors);

    FwdTensors& tensors_;
    FwdTensors* elsewhere_;
    const KernelInstance& kernel_;
    Launcher* launcher_;
};

} // namespace fmha::harness
