#pragma once

#include "judge.hpp"
#include "kernels/targets/hip/emulated/team_executor.hpp"
#include "kernels/targets/hip/numerics.hpp"
#include "team_kernels.hpp"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

/// Mistakes in how a feed and its teams meet, and the hazards that the emulated machine names.
namespace fmha::hip_target::test {

/// What a run says: whether the result is right, or the hazard.
struct Verdict {
    bool right = false;
    std::optional<Hazard> hazard;
    std::string message;
};

/// Runs `kernel` on machines of type `Machine`, each of which makes `mistake`.
template <class Machine, class Mistake>
Verdict verdict_on(FwdProblem& problem, const KernelConfig& kernel, Mistake mistake, Schedule schedule) {
    Verdict verdict;
    try {
        emulate_teams(kernel, problem.args(), 1, schedule,
                      [mistake](TeamBlock& block, MatrixUnit unit, const WsMaps& maps, int agent) {
                          return Machine(block, unit, maps, agent, mistake);
                      });
        const auto distance = judge(problem, numerics_of(kernel));
        verdict.right = distance.acceptable();
        verdict.message = distance.worst;
    } catch (const EmulationError& error) {
        verdict.hazard = error.hazard();
        verdict.message = error.what();
    }
    return verdict;
}

/// What a mistake is named under each schedule, which is always the same; none: the result is wrong.
template <class Mistake>
struct Named {
    Mistake mistake;
    std::array<std::optional<Hazard>, schedules> hazards;
};
template <class Mistake>
Named<Mistake> always(Mistake mistake, std::optional<Hazard> hazard = std::nullopt) {
    return {mistake, {hazard, hazard, hazard, hazard}};
}

/// Expects that `verdict_of(mistake, schedule)` is right without a mistake, and as the table has it with each.
template <class Mistake, class VerdictOf>
void expect_named(const std::vector<Named<Mistake>>& table, int schedule, VerdictOf verdict_of) {
    const Verdict right = verdict_of(Mistake::none, static_cast<Schedule>(schedule));
    ASSERT_TRUE(right.right) << right.message;
    for (const Named<Mistake>& row : table) {
        const Verdict verdict = verdict_of(row.mistake, static_cast<Schedule>(schedule));
        const int number = static_cast<int>(row.mistake);
        EXPECT_FALSE(verdict.right) << number;
        EXPECT_EQ(verdict.hazard, row.hazards.at(static_cast<std::size_t>(schedule)))
            << number << ": " << verdict.message;
    }
}

} // namespace fmha::hip_target::test
