#pragma once

#include "kernels/generator/audit.hpp"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

/// Budgets for the plain iterations of planned kernels: facts that somebody accepted, with a reason.
namespace fmha::generator {

/// Of one kernel and one iteration. More instructions than that, or a matrix unit that can be less busy, is worse.
struct LoopBudget {
    std::int64_t vector = 0; ///< vector instructions, transcendental ones included
    std::int64_t moves = 0, wide_integers = 0, selects = 0;
    std::int64_t busy = 0;    ///< built::busy_together in thousandths
    std::int64_t waiting = 0; ///< built::busy_waiting in thousandths, the bound that measured speeds follow
    friend bool operator==(const LoopBudget&, const LoopBudget&) = default;
};
LoopBudget budget_of(const built::LoopModel& loop);

struct BudgetAcceptance {
    std::string date; ///< "2026-05-17"
    std::string reason;
    std::int64_t changes = 0; ///< kernels whose budget changed or is new
    friend bool operator==(const BudgetAcceptance&, const BudgetAcceptance&) = default;
};

/// The budgets of one architecture, `<folder>/<arch>.json`. They are judged against loops of the same compiler.
struct LoopBudgets {
    std::string compiler;
    std::vector<BudgetAcceptance> accepted;
    std::map<std::string, LoopBudget> kernels; ///< by name
    friend bool operator==(const LoopBudgets&, const LoopBudgets&) = default;
};

/// `read_budgets` gives no kernels where there is no file. Throws InputError, with file and key, for an unreadable file.
LoopBudgets read_budgets(const std::filesystem::path& folder, const ArchName& arch);
void write_budgets(const LoopBudgets& budgets, const std::filesystem::path& folder, const ArchName& arch);

/// Which kernels of a build are worse than their budgets, or have none; how many were judged. Those of another compiler than the
/// budgets' are not, and a sentence an architecture says so.
struct BudgetVerdict {
    std::vector<AuditFinding> findings;
    std::vector<std::string> notes;
    std::size_t judged = 0, not_judged = 0;

    /// There were loops, and nothing was said about any of them.
    bool said_nothing() const { return judged == 0 && not_judged > 0; }
};

/// Judges all loops of a build by the budgets in the folder.
BudgetVerdict over_budget(const built::Manifest& manifest, const std::filesystem::path& folder);

/// Writes the loops of a build as the budgets of its kernels and keeps those of others, unless the compiler is another one. Returns a
/// sentence for each architecture. Nothing is written where nothing changed.
std::vector<std::string> accept_budgets(const built::Manifest& manifest, const std::filesystem::path& folder,
                                        const std::string& reason, const std::string& date);

} // namespace fmha::generator
