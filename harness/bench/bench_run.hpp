#pragma once

#include "harness/bench/bench.hpp"
#include "harness/results/journal_file.hpp"

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace fmha::harness {

/// The rows of a benchmark that can be continued, a line a row.
class BenchJournal {
  public:
    /// As JournalFile, with lines that `append` writes.
    BenchJournal(const std::filesystem::path& file, const Json& identity, const std::string& run_id);

    const std::string& run_id() const { return lines_.run_id(); }
    /// The row of an earlier process; nullptr when there is none.
    const BenchRow* finished(const std::string& name, const std::string& kernel, std::int64_t round) const;
    void append(const BenchRow& row);
    const std::string& failure() const { return lines_.failure(); }

  private:
    std::unordered_map<std::string, BenchRow> finished_;
    JournalFile lines_; ///< reads into finished_
};

/// Kernels to be timed on cases, each in a process that it may take with it.
struct BenchRun {
    std::vector<Case> cases;
    const KernelSource& source; ///< of a target that does nothing before a worker asks for kernels
    std::string arch;
    std::function<std::unique_ptr<TimingTarget>()> timing; ///< called once in each worker
    BenchOptions options{};
    std::int64_t rounds = 1;         ///< over all cases and kernels, one after the other
    int workers = 1;                 ///< processes at a time; 0 = everything in this process
    std::chrono::seconds timeout{0}; ///< of one kernel on one case in a worker; 0 = none
    /// Told when it is known how many rows will be measured.
    std::function<void(std::size_t)> on_planned{};
    std::function<bool()> stop{}; ///< asked several times a second; true ends the run early
};

/// How a benchmark ended.
struct BenchEnd {
    bool interrupted = false;
    std::size_t resumed = 0; ///< rows that an earlier process had left in the journal
};

/// One row a round for each kernel of each case, and one for a case without kernels; `on_row` gets each as soon as it is there,
/// with the position of its case, those of the journal too. A kernel that crashes or hangs has a row that says so, and costs no
/// other. Rows are appended to `journal`, if there is one, and not measured again. Throws InputError for a case that cannot
/// be laid out.
BenchEnd bench_cases(const BenchRun& run, BenchJournal* journal,
                     const std::function<void(std::size_t, const BenchRow&)>& on_row);

} // namespace fmha::harness
