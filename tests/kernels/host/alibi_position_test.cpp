// ALiBi far from the start of the keys: the error depends on the distance of the keys that matter, not on the position.

#include "judge.hpp"

#include "kernels/targets/host/host_target.hpp"

#include <gtest/gtest.h>

#include <array>

namespace fmha::host_target::test {
namespace {

struct Row {
    const char* name;
    std::int64_t seqlen_q, seqlen_k;
    MaskArgs mask;
    bool sink_logit = false;
    bool group = false;
    float sign = 1.0F; ///< of the slopes
};

void PrintTo(const Row& row, std::ostream* out) {
    *out << row.name;
}

class AlibiAt : public testing::TestWithParam<Row> {};

TEST_P(AlibiAt, APositionCostsNoAccuracy) {
    const Row& row = GetParam();
    for (const DataType type : {DataType::fp32, DataType::fp16}) {
        Shape shape;
        shape.data_type = type;
        shape.batch = 1;
        shape.nhead_q = 2;
        shape.nhead_k = 1;
        shape.hdim_q = shape.hdim_v = 16;
        shape.seqlen_q = {row.seqlen_q};
        shape.seqlen_k = {row.seqlen_k};
        shape.mask = row.mask;
        shape.bias = BiasType::alibi;
        shape.sink_logit = row.sink_logit;
        shape.group = row.group;
        FwdProblem problem(shape);
        const std::array slopes{row.sign * 0.5F, row.sign * 0.1F};
        problem.args().score.alibi_slopes = slopes.data();
        const KernelConfig config =
            problem.config({.m0 = 64, .n0 = 128, .k0 = 16, .n1 = 16, .k1 = 32, .k0max = 16});
        run_kernel(config, problem.args());
        EXPECT_EQ(judge(problem, config).complaint(true), "") << to_string(type);
    }
}

using enum MaskType;
INSTANTIATE_TEST_SUITE_P(
    Host, AlibiAt,
    testing::Values(
        Row{"causal", 4, 100000, {bottom_right, -1, 0}},
        Row{"causal_with_sink", 4, 100000, {bottom_right, -1, 0}, true},
        Row{"causal_group", 4, 100000, {bottom_right, -1, 0}, true, true},
        Row{"causal_with_negative_slopes", 4, 100000, {bottom_right, -1, 0}, true, false, -1.0F},
        Row{"causal_group_with_negative_slopes", 4, 100000, {bottom_right, -1, 0}, true, true, -1.0F},
        Row{"no_mask_with_negative_slopes", 4, 100000, {}, true, false, -1.0F},
        Row{"window_with_negative_slopes", 4, 100000, {bottom_right, 60000, 9}, true, false, -1.0F},
        Row{"sinks_with_negative_slopes", 4, 100000, {bottom_right, 60000, 9, 5}, false, false, -1.0F},
        Row{"right_window_with_negative_slopes", 4, 100000, {bottom_right, -1, 3}, true, true, -1.0F},
        Row{"both_sides_with_negative_slopes", 4, 100000, {window_generic, 90000, 90000}, true, false, -1.0F},
        Row{"ahead_with_negative_slopes", 4, 100000, {window_generic, -9000, 99900}, false, false, -1.0F},
        Row{"queries_before_the_keys_with_negative_slopes", 20000, 5, {}, true, false, -1.0F},
        Row{"queries_behind_the_keys_with_negative_slopes", 20000, 5, {top_left, -1, 2}, true, false, -1.0F},
        Row{"a_million_keys", 2, 1000000, {}},
        Row{"a_million_keys_with_negative_slopes", 2, 1000000, {}, false, false, -1.0F},
        Row{"window", 4, 100000, {bottom_right, 1000, 9}, true},
        Row{"right_window", 4, 100000, {bottom_right, -1, 3}}, Row{"no_mask", 4, 100000, {}, true},
        Row{"window_ahead_of_the_diagonal", 4, 100000, {window_generic, -99000, 99900}},
        Row{"queries_before_the_keys", 20000, 5, {}, true},
        Row{"queries_behind_the_keys", 20000, 5, {top_left, -1, 2}, true},
        Row{"top_left_causal", 20000, 5, {top_left, -1, 0}, true}),
    [](const auto& row) { return row.param.name; });

} // namespace
} // namespace fmha::host_target::test
