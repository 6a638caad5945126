#include "fwd_problem.hpp"
#include "judge.hpp"

#include "kernels/targets/host/faults/fault.hpp"

#include <gtest/gtest.h>

#include <set>

namespace fmha::host_target::test {
namespace {

/// A problem on which the fault acts.
Shape shape_for(Fault fault) {
    Shape s;
    s.seqlen_q = {150};
    s.seqlen_k = {150};
    s.padding = 8;
    switch (fault) {
    case Fault::mask_right_too_wide:
        s.mask = {MaskType::top_left, -1, 0, 0};
        break;
    case Fault::mask_left_too_narrow:
        s.mask = {MaskType::bottom_right, 20, 0, 0};
        break;
    case Fault::dropout_byte_off_by_one:
    case Fault::dropout_scale_omitted:
        s.p_drop = 0.2F;
        break;
    case Fault::bias_row_stride_wrong:
        s.bias = BiasType::elementwise;
        break;
    case Fault::alibi_neighbour_slope:
        s.bias = BiasType::alibi;
        break;
    case Fault::sink_added_twice:
        s.sink_logit = true;
        break;
    case Fault::group_offset_off_by_one:
        s.group = true;
        break;
    case Fault::soft_cap_after_mask:
        s.soft_cap = 2.0F;
        s.mask = {MaskType::top_left, -1, 0, 0};
        break;
    case Fault::weights_truncated:
        s.data_type = DataType::fp8bf16;
        s.positive_values = true;
        break;
    default:
        break;
    }
    return s;
}

class HostFault : public testing::TestWithParam<FaultInfo> {};

TEST_P(HostFault, ChangesTheOutputs) {
    FwdProblem problem(shape_for(GetParam().fault));
    const KernelConfig config =
        problem.config({.m0 = 64, .n0 = 64, .k0 = 32, .n1 = 32, .k1 = 32, .k0max = 64});
    run_kernel(config, problem.args());
    const auto right = problem.output_bytes();
    ASSERT_TRUE(judge(problem, config).acceptable());

    problem.poison_outputs();
    run_fwd_with_fault(config, problem.args(), GetParam().fault);
    EXPECT_NE(problem.output_bytes(), right) << GetParam().says;
}

TEST_P(HostFault, BreaksALimit) {
    FwdProblem problem(shape_for(GetParam().fault));
    const KernelConfig config =
        problem.config({.m0 = 64, .n0 = 64, .k0 = 32, .n1 = 32, .k1 = 32, .k0max = 64});
    run_fwd_with_fault(config, problem.args(), GetParam().fault);
    const Distance distance = judge(problem, config);
    EXPECT_FALSE(distance.acceptable())
        << GetParam().says << ": O " << distance.o << ", LSE " << distance.lse << ", RMS " << distance.rms;
    EXPECT_NE(distance.complaint(true), "");
}

INSTANTIATE_TEST_SUITE_P(All, HostFault, testing::ValuesIn(fault_catalogue()), [](const auto& param_info) {
    return std::string(to_string(param_info.param.fault));
});

TEST(FaultCatalogue, HoldsEveryFaultOnce) {
    ASSERT_EQ(fault_catalogue().size(), EnumTable<Fault>::names.size());
    for (std::size_t i = 0; i < fault_catalogue().size(); ++i)
        EXPECT_EQ(fault_catalogue()[i].fault, EnumTable<Fault>::names[i].value);
}

} // namespace
} // namespace fmha::host_target::test
