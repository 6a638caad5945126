#pragma once

#include "harness/cases/case.hpp"
#include "harness/run/kernel_source.hpp"
#include "harness/run/worker_pool.hpp"
#include "tests/mutation/mutants.hpp"
#include "tests/mutation/shared_numbers.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fmha::harness::test {

/// What became of a mutant.
struct Verdict {
    enum class Kind {
        killed,
        unminded,  ///< what kernels write changes, and no gate minds
        unchanged, ///< kernels come through its place and write what they wrote
        unreached, ///< no kernel comes through its place
    } kind = Kind::unreached;
    std::string gate{};      ///< which killed it; "process ended" when its process crashed or took too long
    std::string case_name{}; ///< on which, or on which kernels write something else; "checks/NAME" of a check

    bool survives() const { return kind != Kind::killed; }
};
std::string_view to_string(Verdict::Kind kind);

/// Checks and cases that try mutants, each mutant in a process of its own: the checks first, which take milliseconds, then the
/// cases, those that have killed more before the others.
class Trials {
  public:
    /// `source` has the mutated kernels, for `arch`, `original` those of the host target. Throws InputError when a check is
    /// wrong without a mistake. Without `with_checks` cases alone try a mutant.
    Trials(std::vector<Case> cases, std::shared_ptr<const KernelSource> source,
           std::shared_ptr<const KernelSource> original, std::string arch, bool with_checks = true);
    ~Trials();
    Trials(const Trials&) = delete;
    Trials& operator=(const Trials&) = delete;

    /// Runs every case without a mistake, which tells what each mutant need not be tried on. It is worth its time for many
    /// mutants; otherwise a mutant's process prepares the cases that it needs.
    void prepare_all();

    /// Tries each of `tried`, `jobs` at a time, and calls `on_verdict(i, verdict)` as they end.
    void run(std::span<const fmha::test::Mutant> tried, int jobs,
             const std::function<void(std::size_t, const Verdict&)>& on_verdict);

  private:
    class Prepared;

    Prepared& prepared(std::size_t i);
    std::vector<std::size_t> order_for(const fmha::test::Mutant& mutant) const;
    /// The check that is wrong with the mistake; "" when none is.
    std::string failed_check(const fmha::test::Mutant& mutant, std::atomic<std::uint32_t>& tried_on,
                             bool& reached) const;
    /// What was tried last, as Verdict::case_name, by the number in `tried_on`.
    std::string name_of(std::uint32_t tried_on) const;
    /// The answer of a mutant's process: kind, gate and case, with tabs between them.
    std::string notice(const fmha::test::Mutant& mutant, std::atomic<std::uint32_t>& tried_on);

    std::vector<Case> cases_;
    std::shared_ptr<const KernelSource> source_, original_;
    std::string arch_;
    std::vector<std::unique_ptr<Prepared>> prepared_;
    SharedNumbers kills_;                             ///< of each case
    std::vector<std::vector<unsigned char>> through_; ///< of each check, the places that it comes through
};

} // namespace fmha::harness::test
