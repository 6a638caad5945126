#pragma once

#include "dispatcher/types/json.hpp"

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace fmha::harness {

/// Whether this kind of journal writes such a line behind the first; called in the order of the file. Throws InputError, without the place,
/// for one that contradicts an earlier line.
using JournalLine = std::function<bool(std::string_view line)>;

/// The file of work that can be continued: a first line of JSON that says which run it is, then a line for each finished part. A
/// line is written at once, so that killing the process loses nothing; against a loss of power whoever appends
/// synchronises the file. A process that has it open excludes all others.
class JournalFile {
  public:
    /// Begins `file`, or continues it if it was begun with the same `schema` and `identity`; a last line that is incomplete is
    /// dropped. Throws InputError, and leaves the file as it is, when it cannot be written, is in use, is no journal of
    /// `command` and `schema`, is of another run (which names the members of `identity` that differ) or is damaged elsewhere than at its end.
    /// A new one gets `run_id`.
    JournalFile(std::filesystem::path file, std::string command, std::string schema, const Json& identity,
                std::string run_id, const JournalLine& on_line);
    ~JournalFile();
    JournalFile(const JournalFile&) = delete;
    JournalFile& operator=(const JournalFile&) = delete;

    /// Random, of the run that began the file: a run that continues it is the same run.
    const std::string& run_id() const { return run_id_; }

    /// Appends a line about `name`. After a failure it writes nothing more, so that the run goes on without it.
    void append(const std::string& name, const Json& line);

    /// Synchronises the appended lines with the disk.
    void synchronise();

    /// `synchronise`, unless that was less than a second ago.
    void keep_durable();

    /// Why results are missing from the file, or may be after a loss of power, one sentence; empty when none is.
    const std::string& failure() const { return failure_; }

  private:
    void lock() const;
    std::string content() const;
    void begin(const Json& header);
    /// Reads the file. Returns how many of its bytes are whole.
    std::size_t read(const std::string& text, const Json& header, const JournalLine& on_line);
    /// Appends all of `line` or nothing. Returns the reason for nothing.
    std::string write_line(const std::string& line) const;
    /// Returns the reason why the lines may not be on the disk; empty when they are.
    std::string flush() const;

    std::filesystem::path file_;
    std::string command_;
    int descriptor_ = -1;
    bool dirty_ = false;
    std::chrono::steady_clock::time_point synchronised_{};
    std::string run_id_, failure_;
};

/// The first line of a journal of `schema`, without it; nullopt for another text. Hands the other lines to `on_line`. Throws InputError
/// for a journal that is damaged elsewhere than at its end.
std::optional<Json> read_journal_lines(std::string_view text, const std::filesystem::path& file,
                                       std::string_view schema, const JournalLine& on_line);

} // namespace fmha::harness
