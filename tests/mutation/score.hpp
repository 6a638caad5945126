#pragma once

#include "dispatcher/types/json.hpp"
#include "tests/mutation/mutants.hpp"
#include "tests/mutation/survivors.hpp"
#include "tests/mutation/trials.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace fmha::harness::test {

/// How many mutants of a group were noticed.
struct Score {
    std::size_t killed = 0;
    std::size_t equivalent = 0; ///< survive, with a proof that nothing can notice them
    std::size_t open = 0;       ///< survive, as their table says
    std::size_t unlisted = 0;   ///< survive, and no table says so

    std::size_t tried() const { return killed + equivalent + open + unlisted; }
    /// Noticed ones of those that can be noticed, in percent.
    double percent() const;
};

/// Verdicts on mutants, their sums, and where they contradict the table of survivors.
class ScoreTable {
  public:
    explicit ScoreTable(std::map<std::string, KnownSurvivor> known) : known_(std::move(known)) {}

    void add(const fmha::test::Mutant& mutant, const Verdict& verdict);

    const Score& all() const { return all_; }
    /// A sentence for each mutant that survives unlisted, or is listed as equivalent and was killed.
    const std::vector<std::string>& contradictions() const { return contradictions_; }

    /// The sums per program, operator, gate and case file.
    std::string text() const;
    /// Every verdict and the sums, of `available` mutants.
    Json record(std::size_t available) const;

  private:
    std::map<std::string, KnownSurvivor> known_;
    Score all_;
    std::map<std::string, Score> programs_, operators_;
    std::map<std::string, std::size_t> gates_, files_;
    std::map<std::string, Json> verdicts_;
    std::vector<std::string> contradictions_;
};

} // namespace fmha::harness::test
