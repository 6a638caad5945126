#pragma once

#include "dispatcher/types/enums.hpp"
#include "harness/cases/tier.hpp"
#include "harness/results/outcome.hpp"

#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fmha::harness {

/// One gate on one tensor. `ratio` is measured / allowed: at most 1 passes; infinite for an exact gate that
/// failed.
struct GateVerdict {
    std::string gate;     ///< its name in docs/gates.md: "G1", "G2.row", "G5.11", "exact" …
    std::string tensor{}; ///< "o", "lse", "randval" or ""
    bool passed = true;
    bool required = true; ///< G4 is reported, never required
    double ratio = 0.0;
    std::string detail{}; ///< one sentence when it failed

    bool failed() const { return required && !passed; }
};

/// One element: the value, the expected value and the distance that they may have.
struct Deviation {
    std::string tensor;
    std::int64_t b = 0, h = 0, row = 0, column = 0;
    double got = 0.0, expected = 0.0, limit = 0.0;
};

/// Where the wrong elements of one output lie in the head that has most of them: how many there are in each block of rows and
/// columns.
struct ErrorMap {
    std::string tensor;
    std::int64_t b = 0, h = 0;
    std::string row_axis, column_axis;              ///< "query", "key", "channel"; a statistic has no columns
    std::int64_t rows = 0, columns = 0;             ///< of the head
    std::int64_t block_rows = 1, block_columns = 1; ///< elements of a block
    std::int64_t tile_rows = 0, tile_columns = 0;   ///< of the kernel, along these axes; 0 = whole
    std::vector<std::int64_t> wrong{};              ///< elements of each block, row after row
    bool complete = true; ///< false: there were too many wrong elements to look at all of them

    std::int64_t blocks_down() const { return (rows + block_rows - 1) / block_rows; }
    std::int64_t blocks_across() const { return (columns + block_columns - 1) / block_columns; }
    std::int64_t all_wrong() const { return std::accumulate(wrong.begin(), wrong.end(), std::int64_t{0}); }
};

/// The family and the tile of a kernel that ran.
struct KernelTile {
    KernelFamily family = KernelFamily::fwd;
    std::int64_t m0 = 0, n0 = 0; ///< rows and keys (of the first product)
};

/// One (case, kernel): everything a report shows about it.
struct CaseResult {
    std::string name; ///< the case's printed name, which reproduces it
    std::string about;
    ApiFamily family = ApiFamily::fwd;
    Tier tier = Tier::smoke;
    std::vector<std::string> labels;
    std::string kernel; ///< of all stages (kernel_names.hpp); empty when no kernel was reached
    std::string chosen; ///< the one among them that the result is about: the others were planned around it
    Outcome outcome = Outcome::not_run;
    NotRunReason not_run_reason = NotRunReason::none;
    RefusedBy refused_by = RefusedBy::nobody;
    /// In a word or two: the rule ("P-3"), or the field that the nearest kernel does not take ("hdim_q"). Empty without kernels and for a
    /// launch.
    std::string refusal;
    std::string message; ///< one sentence: why, for every outcome but passed
    std::string tracker; ///< of the entry of --waivers that made the outcome what it is; empty for others
    std::optional<int> device; ///< number of the GPU that it ran on; absent on the processor
    std::vector<GateVerdict> gates;
    std::vector<Deviation> worst;  ///< at most ten, worst first
    std::vector<ErrorMap> maps;    ///< one an output with wrong elements
    std::vector<KernelTile> tiles; ///< of the kernels that ran, in launch order
    std::string pattern;           ///< the shape of the set of wrong elements
    std::string numerics;          ///< the kernel's declared roundings, as text
    std::string reproduce;         ///< command that repeats exactly this
    std::string smaller; ///< the smallest case that is red like this, as text; empty when none was looked for
    std::int64_t rows = 0, elements = 0;
    bool sampled = false;
    std::uint64_t seed = 0;
    double kernel_seconds = 0.0, reference_seconds = 0.0, seconds = 0.0;

    /// First required gate that failed; nullptr when none did.
    const GateVerdict* first_failure() const {
        for (const GateVerdict& gate : gates)
            if (gate.failed()) return &gate;
        return nullptr;
    }
};

/// The subject and the tools of a run.
struct RunInfo {
    std::string version, target, arch, kernels, command, started, machine, compiler;
    std::uint64_t seed = 0;
    bool seed_given = false; ///< the seed of the command replaced those of the cases
    double seconds = 0.0;
    std::int64_t jobs = 0;
    std::int64_t resumed = 0; ///< cases whose results an earlier process had left in the journal
    /// Parts that a reader may miss in the run: shapes of named files that are no cases, devices that were lost. A
    /// sentence each.
    std::vector<std::string> left_out{};
    std::vector<std::string> devices{}; ///< which results are of each of several devices, a line each
};

} // namespace fmha::harness
