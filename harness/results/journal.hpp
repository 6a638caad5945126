#pragma once

#include "dispatcher/types/json.hpp"
#include "harness/results/journal_file.hpp"
#include "harness/results/merge.hpp"
#include "harness/results/result.hpp"

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fmha::harness {

/// The results of a run of cases that can be continued, a line a finished case.
class Journal {
  public:
    /// As JournalFile, with lines that `append` writes.
    Journal(std::filesystem::path file, const Json& identity, std::string run_id);

    const std::string& run_id() const { return lines_.run_id(); }

    /// Results of the cases that had finished when it was opened, by case name; a case may have none.
    const std::map<std::string, std::vector<CaseResult>>& finished() const { return finished_; }

    /// Appends one finished case.
    void append(const std::string& name, std::span<const CaseResult> results);

    void synchronise() { lines_.synchronise(); }
    void keep_durable() { lines_.keep_durable(); }
    const std::string& failure() const { return lines_.failure(); }

  private:
    std::map<std::string, std::vector<CaseResult>> finished_;
    JournalFile lines_; ///< reads into finished_
};

/// The shard of a run that the content of a journal tells of; nullopt for another text. Throws InputError for a journal that is
/// damaged elsewhere than at its end.
std::optional<Part> read_journal(const std::string& text, const std::filesystem::path& file);

} // namespace fmha::harness
