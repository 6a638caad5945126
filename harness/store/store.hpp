#pragma once

#include "dispatcher/types/error.hpp"
#include "harness/results/result.hpp"
#include "harness/store/database.hpp"
#include "harness/store/record.hpp"

#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace fmha::store {

/// A file without a store in it: of zero bytes, or left by a program that was killed while it created one. The next writer fills it.
class EmptyStore : public InputError {
  public:
    using InputError::InputError;
};

/// Whether `file` begins as every SQLite file does. It is not read further; false where it cannot be read at all.
bool looks_like_store(const std::filesystem::path& file);

/// One SQLite file that remembers runs (README.md has its tables). Every row that a call has written stays, if the process is
/// killed the moment after; processes of one machine may write at the same time.
class Store {
  public:
    static constexpr std::chrono::milliseconds usual_patience = std::chrono::seconds(30);
    /// How long a reader waits for the program that creates a file.
    static constexpr std::chrono::milliseconds creation = std::chrono::seconds(1);

    /// Opens `file`, creates it when it is not there and `access` is to write, and brings it to the newest schema. Throws
    /// InputError: unreadable, of something else, of a newer program; to read also EmptyStore.
    Store(const std::filesystem::path& file, Access access,
          std::chrono::milliseconds patience = usual_patience);

    /// All runs in the order in which they were begun.
    std::vector<RunRecord> runs() const;

    /// The results of run `id`; names in alphabetical order.
    std::vector<harness::CaseResult> results(const std::string& id) const;
    std::vector<TimeRecord> times(const std::string& id) const;
    std::vector<ResourceRecord> resources(const std::string& id) const;
    std::vector<CountRecord> counts(const std::string& id) const;

    /// Seconds that each case took on a target, by its name without seed, in the last finished run of all shards that had it.
    std::map<std::string, double> case_seconds(const std::string& target, const std::string& arch) const;

    std::vector<AcceptedRecord> accepted() const;
    /// All of `records` or none.
    void accept(std::span<const AcceptedRecord> records) const;

    const Database& database() const { return *database_; }

  private:
    std::unique_ptr<Database> database_;
};

/// One run while it is written. Findings of a run with this id that the store holds already are kept, and a case, time, kernel or count that
/// comes again replaces itself: a continued run is told once.
class Recording {
  public:
    /// Throws InputError when it cannot be begun.
    Recording(const std::filesystem::path& file, RunRecord run,
              std::chrono::milliseconds patience = Store::usual_patience);
    ~Recording();
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

    /// The results of one case. After a failure nothing more is written, so that the run goes on without the store.
    void add(const std::string& name, std::span<const harness::CaseResult> results);
    void add(const TimeRecord& time);
    void add(std::span<const ResourceRecord> resources);
    void add(std::span<const CountRecord> counts);

    /// Members of the run's identity that are known at its end.
    void identify(const Json& members);

    /// The run has come to its end.
    void finish(double seconds, const std::string& verdict);

    /// Why rows are missing, one sentence; empty when none is.
    const std::string& failure() const { return failure_; }

  private:
    struct Statements;
    template <class Work>
    void attempt(const Work& work);
    std::int64_t word(const std::string& text);
    void write(const std::string& name, std::span<const harness::CaseResult> results);

    Store store_;
    RunRecord run_;
    std::int64_t row_ = 0;
    std::unique_ptr<Statements> statements_;
    std::unordered_map<std::string, std::int64_t> words_; ///< of committed rows
    std::string failure_;
};

/// A new id of a run: 32 random hexadecimal digits.
std::string new_run_id();

} // namespace fmha::store
