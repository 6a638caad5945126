#pragma once

#include "dispatcher/types/json.hpp"
#include "harness/bench/timing.hpp"
#include "harness/bench/work.hpp"
#include "harness/cases/case.hpp"

#include <string>
#include <vector>

namespace fmha::harness {

struct BenchOptions {
    double seconds = 0.5;      ///< of timed launches for each kernel
    bool all_kernels = false;  ///< every accepting kernel, not only the planned one
    std::string kernel_filter; ///< glob on kernel names, with all_kernels; empty = all
};

/// The outcome of one kernel on one case.
enum class BenchOutcome : std::uint8_t {
    measured,
    wrong,   ///< its outputs fail a gate: how fast it is does not matter
    not_run, ///< no kernel, not built, or the target cannot
};

/// A stage of a case, or the clearing of memory before the first one.
struct PartTime {
    std::string name;
    Spread time;
};

struct BenchRow {
    std::string name;       ///< of the case
    std::string kernel;     ///< empty when none was reached
    std::int64_t round = 1; ///< of those of a benchmark
    BenchOutcome outcome = BenchOutcome::not_run;
    std::string message; ///< why, for every outcome but measured
    Spread time;
    std::vector<PartTime> parts; ///< each on its own, where there are several
    std::int64_t places = 0;
    Work work;
    Ceiling matrix, copy;

    double flops_per_second() const { return time.median > 0.0 ? work.flops / time.median : 0.0; }
    double bytes_per_second() const { return time.median > 0.0 ? work.bytes / time.median : 0.0; }
};

/// Times the kernels of one case. The first launch is judged by the gates on sampled rows, and the outputs after the last
/// one must be the same bits, or pass the gates where a kernel does not promise its bits; only then is there a time. Throws InputError for a case that cannot be laid out.
std::vector<BenchRow> bench_case(const Case& c, const KernelSource& source, TimingTarget& timing,
                                 const BenchOptions& options);

/// A row for people, two lines and a line feed each, and for programs.
std::string to_text(const BenchRow& row);
Json to_json(const BenchRow& row);

} // namespace fmha::harness

template <>
struct fmha::EnumTable<fmha::harness::BenchOutcome> {
    using enum harness::BenchOutcome;
    static constexpr std::array<EnumName<harness::BenchOutcome>, 3> names{
        {{measured, "measured"}, {wrong, "wrong"}, {not_run, "not_run"}}};
    static constexpr auto& aliases = no_aliases<harness::BenchOutcome>;
};
