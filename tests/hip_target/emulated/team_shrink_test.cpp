// A case that a mistake of warps in teams turns red becomes small, as those of every other family do (tests/harness/shrink_faults_test.cpp).

#include "kernels/targets/hip/emulated/emulated_target.hpp"
#include "tests/harness/shrinking.hpp"
#include "tests/hip_target/emulated/emulated_kernels.hpp"
#include "tests/hip_target/emulated/faulty_team_kernels.hpp"

namespace fmha::hip_target::test {
namespace {

using targets::TeamFault;

class EveryTeamFault : public testing::TestWithParam<TeamFault> {};

/// The case that notices it.
const char* case_of(TeamFault fault) {
    switch (fault) {
    case TeamFault::values_behind_last_key:
        return "fwd/"
               "faults[mode=group,seqlen_q=[33,70],seqlen_k=[97,64],physical_q=[40,96],physical_k=[128,80],"
               "length_form_q=seqlen,length_form_k=cu_seqlen]@1";
    case TeamFault::queries_of_first_block:
        return "fwd/faults[seqlen_q=130]@1";
    default:
        return "fwd/faults@1";
    }
}

TEST_P(EveryTeamFault, ShrinksToThreeFields) {
    const TeamFault fault = GetParam();
    // Smaller problems may have other kernels, which are right.
    const auto launch = [fault](const KernelConfig& config, const Invocation& invocation) {
        const FwdArgs& args = std::get<FwdArgs>(invocation);
        if (config.algorithm.pipeline == Pipeline::ws)
            emulate_teams_with_fault(config, args, fault);
        else
            emulate_kernel(config, invocation, {.threads = 1});
    };
    harness::test::expect_small({case_of(fault), to_string(fault), launch, "sm_90"});
}

INSTANTIATE_TEST_SUITE_P(Emulated, EveryTeamFault, testing::ValuesIn(harness::test::every<TeamFault>()),
                         [](const auto& param) { return std::string(to_string(param.param)); });

} // namespace
} // namespace fmha::hip_target::test
