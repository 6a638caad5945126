#pragma once

#include "judge.hpp"
#include "kernels/targets/hip/emulated/emulated_target.hpp"
#include "kernels/targets/hip/emulated/team_executor.hpp"
#include "kernels/targets/hip/numerics.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "team_kernels.hpp"

#include <gtest/gtest.h>

#include <span>
#include <type_traits>

/// Expectations of the reference for every problem of a list.
namespace fmha::hip_target::test {

using ShapeOf = Shape (*)(const TeamVariant&);
using KernelOf = KernelConfig (*)(const FwdProblem&, const TeamVariant&);

/// As an emulated team computes it in one schedule.
inline void expect_agreement(std::span<const TeamVariant> variants, int schedule, ShapeOf shape,
                             KernelOf kernel_of) {
    for (const TeamVariant& variant : variants) {
        FwdProblem problem(shape(variant));
        const KernelConfig kernel = kernel_of(problem, variant);
        emulate_kernel(kernel, problem.args(), {.threads = 1, .schedule = static_cast<Schedule>(schedule)});
        EXPECT_EQ(judge(problem, numerics_of(kernel)).complaint(true), "") << variant.name;
    }
}

/// As the host computes it.
inline void expect_agreement_on_host(std::span<const TeamVariant> variants, ShapeOf shape,
                                     KernelOf kernel_of) {
    for (const TeamVariant& variant : variants) {
        FwdProblem problem(shape(variant));
        const KernelConfig kernel = kernel_of(problem, variant);
        host_target::run_kernel(kernel, problem.args());
        EXPECT_EQ(host_target::test::judge(problem, kernel).complaint(true), "") << variant.name;
    }
}

/// By emulated teams, whose contexts `Wrap` makes others of.
template <template <class> class Wrap>
void emulate_wrapped(const KernelConfig& kernel, const FwdArgs& args) {
    emulate_teams(
        kernel, args, 1, Schedule::feed_first,
        [](TeamBlock& block, MatrixUnit unit, const WsMaps& maps, int agent) {
            return EmulatedTeamMachine(block, unit, maps, agent);
        },
        [](auto& machine, const auto& setup) {
            return Wrap<WsContext<std::remove_cvref_t<decltype(machine)>, RunTimePlan<WsPlan>>>(machine,
                                                                                                setup);
        });
}

} // namespace fmha::hip_target::test
