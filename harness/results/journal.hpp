#pragma once

#include "dispatcher/types/json.hpp"
#include "harness/results/merge.hpp"
#include "harness/results/result.hpp"

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fmha::harness {

/// The file of a run that can be continued: a first line of JSON that says which run it is, then one line a finished
/// case. A line is written at once when its case has finished, so that killing the process loses nothing; against a
/// loss of power whoever appends synchronises the file. A process that has it open excludes all others.
class Journal {
  public:
    /// Begins `file`, or continues it if it was begun with the same `identity`; a last line that is incomplete is
    /// dropped. Throws InputError, and leaves the file as it is, when it cannot be written, is in use, is no journal,
    /// is of another run (which names the members of `identity` that differ) or is damaged elsewhere than at its end.
    /// A new one gets `run_id`.
    Journal(std::filesystem::path file, const Json& identity, std::string run_id);
    ~Journal();
    Journal(const Journal&) = delete;
    Journal& operator=(const Journal&) = delete;

    /// Random, of the run that began the file: whoever continues it is the same run.
    const std::string& run_id() const { return run_id_; }

    /// Results of the cases that had finished when it was opened, by case name; a case may have none.
    const std::map<std::string, std::vector<CaseResult>>& finished() const { return finished_; }

    /// Appends one finished case. After a failure it writes nothing more, so that the run goes on without it.
    void append(const std::string& name, std::span<const CaseResult> results);

    /// Synchronises the appended lines with the disk.
    void synchronise();

    /// `synchronise`, unless that was less than a second ago.
    void keep_durable();

    /// Why results are missing from the file, or may be after a loss of power, one sentence; empty when none is.
    const std::string& failure() const { return failure_; }

  private:
    void lock() const;
    std::string content() const;
    void begin(const Json& identity);
    /// Reads the file. Returns how many of its bytes are whole.
    std::size_t read(const std::string& text, const Json& identity);
    /// Appends all of `line` or nothing. Returns the reason for nothing.
    std::string write_line(const std::string& line) const;
    /// Returns the reason why the lines may not be on the disk; empty when they are.
    std::string flush() const;

    std::filesystem::path file_;
    int descriptor_ = -1;
    bool dirty_ = false;
    std::chrono::steady_clock::time_point synchronised_{};
    std::map<std::string, std::vector<CaseResult>> finished_;
    std::string run_id_, failure_;
};

/// The shard of a run that the content of a journal tells of; nullopt for another text. Throws InputError for a journal that is
/// damaged elsewhere than at its end.
std::optional<Part> read_journal(const std::string& text, const std::filesystem::path& file);

} // namespace fmha::harness
