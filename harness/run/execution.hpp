#pragma once

#include "harness/families/family.hpp"
#include "harness/results/result.hpp"
#include "harness/run/candidate.hpp"

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace fmha::harness {

/// The same case with the same values in other places: heads and rows in the other order, rows farther apart, pages and slots
/// shuffled. It is as
/// aligned as `c`, up to 32 elements, so that a kernel that takes the one takes the other.
Case in_another_layout(const Case& c);

/// The outputs of the stages of a candidate, in launch order.
using StageOutputs = std::vector<Outputs>;

/// The values of a case in other memory.
struct Elsewhere {
    CaseData* data = nullptr; ///< nullptr: nowhere
    const Case* of = nullptr; ///< the case that lies there: in another layout, and maybe in reverse order
    /// The same without the reverse order; nullptr where there is no room.
    std::function<std::unique_ptr<CaseData>()> in_order;
};

/// Launches a candidate's kernels one after another, over differently poisoned memory and in differently laid out memory, and
/// compares their outputs. After each stage it looks for bytes that this stage had no business to write.
class Execution {
  public:
    /// Without `elsewhere` G5.8 and G5.11 are left out. `rows`: those that kernels have to compute, with StageKernel::run_rows; empty = whole
    /// launches.
    Execution(CaseData& here, Elsewhere elsewhere, const Candidate& candidate,
              std::span<const reference::RowId> rows = {});

    /// The first run, whose results the case's memory then holds.
    StageOutputs first();
    /// As many runs as make `repeats` with the first one, and some more when they differ from it.
    void repeat(const StageOutputs& first, int repeats);

    /// One more run, in which stages that the case divides are called several times; nothing for other cases.
    void in_parts(const StageOutputs& first);

    /// G5.5 to G5.8 and G5.11 of all runs so far, and G5.10 of the one in parts.
    std::vector<GateVerdict> gates() const;
    /// Of the kernels alone, in the fastest run.
    double kernel_seconds() const { return kernel_seconds_; }

  private:
    enum class Calls { whole, divided };

    /// `divided`: a stage that the case divides is called once for each part.
    StageOutputs run(CaseData& data, Poison poison, Calls calls = Calls::whole);
    /// What is run elsewhere, by the names that its rows have here.
    StageOutputs run_elsewhere(Poison poison);
    void judge_elsewhere(const StageOutputs& first, const StageOutputs& again, const std::string& difference);
    double launch(std::size_t stage, CaseData& data, const Invocation& invocation) const;
    std::string stage_prefix(std::size_t stage) const;
    std::string first_difference(const StageOutputs& x, const StageOutputs& y) const;

    CaseData& here_;
    Elsewhere elsewhere_;
    const Candidate& candidate_;
    std::span<const reference::RowId> rows_;
    int repeats_ = 1;
    double kernel_seconds_ = std::numeric_limits<double>::infinity();
    GateVerdict stray_{.gate = "G5.5"}, poison_{.gate = "G5.6"}, repeat_{.gate = "G5.7"},
        layout_{.gate = "G5.8"}, order_{.gate = "G5.11"};
    std::optional<GateVerdict> parts_;
};

} // namespace fmha::harness
