// Warp-specialised forward of e4m3, V by column: by the host's one team and by emulated teams in every schedule, against the reference;
// what its weights look like, and what its sums of few bits need.

#include "judge.hpp"
#include "kernels/targets/hip/cannot_execute.hpp"
#include "kernels/targets/hip/emulated/emulated_target.hpp"
#include "kernels/targets/hip/numerics.hpp"
#include "kernels/targets/hip/ws_maps.hpp"
#include "kernels/targets/hip/ws_plan.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "team_kernels.hpp"

#include <gtest/gtest.h>

#include <set>

namespace fmha::hip_target::test {
namespace {

/// A problem whose tensors have maps: lines of rows and of keys are whole units with what lies behind them, which is NaN.
Shape e4m3_shape(DataType type, std::int64_t channels) {
    Shape shape = team_shape(type, channels);
    shape.v_layout = VLayout::column;
    shape.extra = 0;
    shape.padding = 16;
    shape.seqlen_k = {336};
    return shape;
}

struct E4m3Variant {
    const char* name;
    int teams, keys, channels;
    DataType type;
    void (*change)(Shape&);
};

const E4m3Variant e4m3_variants[] = {
    {"plain", 2, 128, 64, DataType::fp8bf16, [](Shape&) {}},
    {"128 channels, the last keys within a unit", 2, 128, 128, DataType::fp8fp32,
     [](Shape& s) {
         s.hdim_q = s.hdim_v = 125;
         s.seqlen_k = {333};
         s.padding = 19;
     }},
    {"three teams, causal, query heads in groups, descales", 3, 64, 64, DataType::fp8bf16,
     [](Shape& s) {
         s.nhead_q = 4;
         s.nhead_k = 2;
         s.mask = {MaskType::top_left, -1, 0, 0};
         s.qscale = QScale::pertensor;
     }},
    {"96 keys, window and sink tokens, 8-bit output", 2, 96, 128, DataType::fp8,
     [](Shape& s) {
         s.seqlen_q = {400};
         s.seqlen_k = {704};
         s.mask = {MaskType::top_left, 100, 0, 4};
     }},
    {"160 keys in two blocks of a line, soft cap, sink logits", 2, 160, 64, DataType::fp8fp32,
     [](Shape& s) {
         s.soft_cap = 2.0F;
         s.sink_logit = true;
     }},
    {"96 channels, elementwise bias", 2, 64, 96, DataType::fp8bf16,
     [](Shape& s) { s.bias = BiasType::elementwise; }},
    {"ALiBi, one tile of keys", 2, 128, 64, DataType::fp8bf16,
     [](Shape& s) {
         s.bias = BiasType::alibi;
         s.seqlen_k = {80};
     }},
    {"three entries, causal from the bottom right", 2, 64, 64, DataType::fp8bf16,
     [](Shape& s) {
         s.batch = 3;
         s.seqlen_q = {70};
         s.seqlen_k = {144};
         s.mask = {MaskType::bottom_right, -1, 0, 0};
     }},
};

Shape shape_of(const E4m3Variant& variant) {
    Shape shape = e4m3_shape(variant.type, variant.channels);
    variant.change(shape);
    return shape;
}
KernelConfig kernel_of(const FwdProblem& problem, const E4m3Variant& variant) {
    return team_kernel(problem, variant.teams, variant.keys, variant.channels);
}

class E4m3EverySchedule : public testing::TestWithParam<int> {};

TEST_P(E4m3EverySchedule, AgreesWithTheReference) {
    for (const E4m3Variant& variant : e4m3_variants) {
        FwdProblem problem(shape_of(variant));
        const KernelConfig kernel = kernel_of(problem, variant);
        emulate_kernel(kernel, problem.args(), {.threads = 1, .schedule = static_cast<Schedule>(GetParam())});
        const auto distance = judge(problem, numerics_of(kernel));
        EXPECT_TRUE(distance.acceptable()) << variant.name << ": O " << distance.o << ", LSE " << distance.lse
                                           << ", RMS " << distance.rms << ", " << distance.worst;
    }
}
INSTANTIATE_TEST_SUITE_P(Teams, E4m3EverySchedule, testing::Range(0, schedules));

TEST(E4m3OneTeam, AgreesWithTheReferenceOnTheHost) {
    for (const E4m3Variant& variant : e4m3_variants) {
        FwdProblem problem(shape_of(variant));
        const KernelConfig kernel = kernel_of(problem, variant);
        host_target::run_kernel(kernel, problem.args());
        const auto distance = host_target::test::judge(problem, kernel);
        EXPECT_TRUE(distance.acceptable()) << variant.name << ": O " << distance.o << ", LSE " << distance.lse
                                           << ", RMS " << distance.rms << ", " << distance.worst;
    }
}

} // namespace
} // namespace fmha::hip_target::test
