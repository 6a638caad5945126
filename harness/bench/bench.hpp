#pragma once

#include "dispatcher/types/json.hpp"
#include "harness/bench/timing.hpp"
#include "harness/bench/work.hpp"
#include "harness/cases/case.hpp"
#include "harness/families/family.hpp"
#include "harness/results/outcome.hpp"
#include "harness/run/candidate.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fmha::harness {

/// Which kernels of a case are timed.
enum class KernelChoice : std::uint8_t {
    planned,  ///< the dispatcher's choice
    matching, ///< every accepting kernel with the smallest head dimensions that any of them has
    all,      ///< every accepting kernel
};

struct BenchOptions {
    double seconds = 0.5; ///< of timed launches for each kernel
    KernelChoice kernels = KernelChoice::planned;
    std::string kernel_filter{}; ///< glob on kernel names, but for planned ones; empty = all
    std::optional<std::int64_t>
        warm_up{}; ///< launches before the timed ones; absent: as long as a tenth of `seconds`
    std::optional<std::int64_t> launches{}; ///< timed ones; absent: as many as fit into `seconds`
    std::int64_t memory_limit = 0; ///< bytes (of Family::bytes) above which a case is not run; 0 = none
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
    /// The largest difference from the reference among the ten elements that come nearest to their limits, of kernels that
    /// were judged.
    std::optional<double> max_error{};
    std::vector<KernelConfig> kernels{}; ///< of all stages that were reached
    Work work;
    Ceiling matrix, copy;

    double flops_per_second() const { return time.median > 0.0 ? work.flops / time.median : 0.0; }
    double bytes_per_second() const { return time.median > 0.0 ? work.bytes / time.median : 0.0; }
};

/// The kernels of a case that are to be timed, or why there are none.
struct PlannedCase {
    std::vector<Candidate> candidates;
    std::optional<BenchRow> refused;
};
PlannedCase plan_case(const Case& c, const KernelSource& source, const std::string& arch,
                      const BenchOptions& options);

/// One case in memory. Throws InputError for a case that cannot be laid out, and NoRoomForTensor.
class CaseBench {
  public:
    CaseBench(const Case& c, const std::string& arch, TimingTarget& timing, const BenchOptions& options);

    /// Times kernels. The first launch is judged by the gates on sampled rows, and the outputs after the last
    /// one must be the same bits, or pass the gates where a kernel does not promise its bits; only then is there a time.
    BenchRow time(const Candidate& candidate);

  private:
    Case c_;
    TimingTarget& timing_;
    BenchOptions options_;
    std::unique_ptr<CaseData> data_;
    Work work_;
};

/// A row for people, two lines and a line feed each, and for programs.
std::string to_text(const BenchRow& row);
Json to_json(const BenchRow& row);

/// A row whole, for another process or a later one, and back. Throws InputError for another text.
Json pack(const BenchRow& row);
BenchRow unpack_row(const Json& json);

} // namespace fmha::harness

template <>
struct fmha::EnumTable<fmha::harness::KernelChoice> {
    using enum harness::KernelChoice;
    static constexpr std::array<EnumName<harness::KernelChoice>, 3> names{
        {{planned, "planned"}, {matching, "matching"}, {all, "all"}}};
    static constexpr auto& aliases = no_aliases<harness::KernelChoice>;
};
