#pragma once

#include "dispatcher/types/json.hpp"
#include "harness/results/outcome.hpp"

#include <array>
#include <cstdint>
#include <string>

/// The rows of a store, apart from the results of cases, which are `harness::CaseResult`s.
namespace fmha::store {

/// The command that a run is one of.
enum class RunKind : std::uint8_t { verify, bench, build, parity };

/// One run of a command: its kind, machine and options.
struct RunRecord {
    std::string id; ///< unique; a continued run keeps that of its beginning
    RunKind kind = RunKind::verify;
    /// The options that chose the subjects, as text. Runs of one kind, target, architecture and selection make a
    /// series: the next can be compared with the last.
    std::string selection;
    std::string command, version, commit, machine, compiler, driver, target, arch, started;
    double seconds = 0.0;
    std::int64_t shard = 1, shards = 1;
    std::int64_t asked = 0;         ///< cases or kernels that a whole run of this shard has
    Json identity = Json::object(); ///< everything on which outcomes depend, see harness/cli/run_identity.hpp
    std::string verdict;            ///< "green", "red", or empty for a run that has not finished
};

/// The time of one kernel on one case in one round of a benchmark, seconds.
struct TimeRecord {
    std::string name, kernel;
    std::int64_t round = 0;
    harness::BenchOutcome outcome = harness::BenchOutcome::not_run;
    std::string message;
    double median = 0.0, low = 0.0, high = 0.0, best = 0.0; ///< low and high are quartiles
    std::int64_t samples = 0, places = 0;
    double flops = 0.0, bytes = 0.0;
};

/// The resources of one compiled kernel; units as in built::Resources.
struct ResourceRecord {
    std::string kernel, arch, compiler;
    std::int64_t vgprs = 0, agprs = 0, sgprs = 0, lds_bytes = 0, scratch_bytes = 0, vgpr_spills = 0,
                 sgpr_spills = 0, occupancy = 0, code_bytes = 0, compile_ms = 0;

    bool spills() const { return scratch_bytes > 0 || vgpr_spills > 0; }
};

/// A number that stays until somebody changes it on purpose: how many kernels a list has.
struct CountRecord {
    std::string subject, unit;
    std::int64_t value = 0;
};

/// A change for the worse that somebody has accepted (`fmha gate --accept`).
struct AcceptedRecord {
    std::string at, kind, series, subject, before, after;
    double value = 0.0; ///< `after` as a number, where it is one
    std::string reason;
};

} // namespace fmha::store

template <>
struct fmha::EnumTable<fmha::store::RunKind> {
    using enum store::RunKind;
    static constexpr std::array<EnumName<store::RunKind>, 4> names{
        {{verify, "verify"}, {bench, "bench"}, {build, "build"}, {parity, "parity"}}};
    static constexpr auto& aliases = no_aliases<store::RunKind>;
};
