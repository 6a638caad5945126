#pragma once

#include "harness/cases/case.hpp"
#include "harness/cases/case_enums.hpp"
#include "harness/cases/load.hpp"
#include "harness/cli/catalogue_choice.hpp"
#include "harness/cli/options.hpp"
#include "harness/cli/run_processes.hpp"
#include "harness/cli/store_option.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fmha::cli {

/// The cases that `fmha verify` is asked for: those of case files, or the witnesses of a list, and a shard of them.
class CaseChoice {
  public:
    /// These outlive it.
    struct Of {
        const RunChoice& run;
        RunProcesses& processes;
        CatalogueChoice& catalogue;
        const StoreOption& store;
    };
    explicit CaseChoice(const Of& of) : of_(of) {}

    void declare(OptionSet& options);
    /// Throws InputError for options that cannot be used.
    void check() const;

    /// Of every shard. Throws InputError for names that are none.
    std::vector<harness::Case> all();
    /// Those of --shard: of equal duration where the store knows how long they took, else every n-th.
    std::vector<harness::Case> of_shard(const std::vector<harness::Case>& all);
    /// Those that `names` stand for, of every tier and family and with the seeds of their files; without any, the whole matrix. Throws
    /// InputError for names that are none.
    std::vector<harness::Case> at_every_tier(const std::vector<std::string>& names);
    /// What the cases, or the named files, leave out, a sentence each.
    std::vector<std::string> left_out();
    /// How often the covering arrays of the named files have each pair of features, with the name of the file. Throws InputError where none has
    /// one.
    std::vector<std::pair<std::string, harness::PairTable>> pairs();

    const std::string& family() const { return family_; }
    std::optional<std::uint64_t> seed() const { return seed_; }
    bool is_divided() const { return !shard_.empty(); }
    harness::Shard shard() const;
    /// SHA-256 of a division into equal durations; "" for another.
    const std::string& balance() const { return balance_; }
    /// What was asked for, in words that are the same for the same cases.
    std::string words() const;

  private:
    harness::LoadOptions load_options();
    harness::Tier tier() const { return tier_.value_or(harness::Tier::smoke); }

    Of of_;
    std::vector<std::string> names_;
    std::optional<harness::Tier> tier_;
    std::string family_, shard_, balance_;
    std::optional<std::uint64_t> seed_;
};

} // namespace fmha::cli
