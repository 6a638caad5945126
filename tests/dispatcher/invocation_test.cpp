#include "dispatcher/invocation.hpp"

#include "dispatcher/types/error.hpp"
#include "tests/dispatcher/kernels.hpp"

#include <gmock/gmock.h>

#include <limits>

namespace fmha {
namespace {

using testing::builder_for;

std::vector<Problem> problems() {
    Presence packed;
    packed.seqstart_q = packed.seqstart_k = packed.cu_seqlen_k = true;
    return {
        builder_for(ApiFamily::fwd).build(),
        builder_for(ApiFamily::fwd)
            .lse(true)
            .dropout(true)
            .store_randval(true)
            .bias_type(BiasType::alibi)
            .build(),
        builder_for(ApiFamily::fwd)
            .logits_soft_cap(true)
            .mask_type(MaskType::top_left)
            .window(9, 0)
            .sink_size(3)
            .build(),
        builder_for(ApiFamily::fwd)
            .bias_type(BiasType::elementwise)
            .sink_logit(true)
            .v_rowmajor(false)
            .build(),
        builder_for(ApiFamily::fwd)
            .group_mode(true)
            .max_seqlen(256, 0)
            .min_seqlen_q(4)
            .variable_lengths(packed)
            .build(),
        builder_for(ApiFamily::fwd).data_type(DataType::fp8bf16).qscale_type(QScale::pertensor).build(),
    };
}

TEST(Invocation, ProblemSkeletonProblemIsTheIdentity) {
    for (const Problem& problem : problems())
        EXPECT_EQ(problem_of(problem.signature, skeleton_of(problem), problem.arch), problem)
            << problem.to_string();
}

TEST(Invocation, PointersDecideTheFlagsNotTheTraits) {
    const Problem plain = builder_for(ApiFamily::fwd).build();
    FwdArgs args = skeleton_of(plain);
    float lse = 0.0F;
    args.lse.data = &lse;
    EXPECT_TRUE(problem_of(plain.signature, args, plain.arch).signature.has_lse);
    args.score.sink_logit = &lse;
    EXPECT_TRUE(problem_of(plain.signature, args, plain.arch).signature.has_sink_logit);
}

TEST(Invocation, ValueRulesNameTheirId) {
    const auto rule = [](const auto& change) {
        FwdArgs args = skeleton_of(builder_for(ApiFamily::fwd).build());
        change(args);
        try {
            validate_values(args);
        } catch (const ProblemError& error) {
            return error.rule();
        }
        return std::string();
    };
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(rule([](FwdArgs&) {}), "");
    EXPECT_EQ(rule([](FwdArgs& a) { a.dropout.p_drop = 0.99F; }), "");
    EXPECT_EQ(rule([](FwdArgs& a) { a.dropout.p_drop = 1.0F; }), "D-1");
    EXPECT_EQ(rule([](FwdArgs& a) { a.dropout.p_drop = -0.1F; }), "D-1");
    EXPECT_EQ(rule([](FwdArgs& a) { a.dropout.p_drop = nan; }), "D-1");
    EXPECT_EQ(rule([](FwdArgs& a) { a.score.logits_soft_cap = -1.0F; }), "C-1");
    EXPECT_EQ(rule([](FwdArgs& a) { a.score.logits_soft_cap = nan; }), "C-1");
    EXPECT_EQ(rule([](FwdArgs& a) { a.score.scale_s = nan; }), "H-3");
    EXPECT_EQ(rule([](FwdArgs& a) { a.score.scale_o = nan; }), "O-1");
}

} // namespace
} // namespace fmha
