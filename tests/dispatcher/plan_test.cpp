#include "dispatcher/dispatcher.hpp"
#include "dispatcher/types/error.hpp"
#include "tests/dispatcher/kernels.hpp"

#include <gmock/gmock.h>

namespace fmha {
namespace {

using testing::builder_for;
using ::testing::ElementsAre;
using testing::kernel_of;

std::vector<KernelFamily> families(const ExecutionPlan& plan) {
    std::vector<KernelFamily> list;
    for (const PlanStage& stage : plan.stages()) list.push_back(stage.family);
    return list;
}

std::vector<KernelFamily> missing(const ExecutionPlan& plan) {
    return {plan.missing().begin(), plan.missing().end()};
}

struct Planned {
    Registry registry;
    Dispatcher dispatcher{registry};
};

TEST(Plan, EmptyRegistryMissesEveryStage) {
    Planned p;
    for (const auto& [api, name] : EnumTable<ApiFamily>::names) {
        const Problem problem = builder_for(api).build();
        EXPECT_EQ(p.dispatcher.select_kernel(problem), nullptr);
        const ExecutionPlan plan = p.dispatcher.plan(problem);
        EXPECT_FALSE(plan.valid()) << name;
        EXPECT_EQ(missing(plan), std::vector(stages_of(api).begin(), stages_of(api).end())) << name;
    }
}

TEST(Plan, OneStageFamilies) {
    Planned p;
    using enum KernelFamily;
    for (const KernelFamily family : {fwd, fwd_pagedkv, fwd_appendkv, batch_prefill})
        p.registry.add(kernel_of(family));
    EXPECT_THAT(families(p.dispatcher.plan(builder_for(ApiFamily::fwd).build())), ElementsAre(fwd));
    EXPECT_THAT(families(p.dispatcher.plan(builder_for(ApiFamily::fwd_pagedkv).build())),
                ElementsAre(fwd_pagedkv));
    EXPECT_THAT(families(p.dispatcher.plan(builder_for(ApiFamily::fwd_appendkv).build())),
                ElementsAre(fwd_appendkv));
    EXPECT_THAT(families(p.dispatcher.plan(builder_for(ApiFamily::batch_prefill).build())),
                ElementsAre(batch_prefill));
}

TEST(Plan, SplitNeedsItsCombineOfTheSameHeadDimension) {
    Planned p;
    using enum KernelFamily;
    p.registry.add(kernel_of(fwd_splitkv));
    const Problem problem = builder_for(ApiFamily::fwd_splitkv).num_splits(4).build();
    EXPECT_THAT(missing(p.dispatcher.plan(problem)), ElementsAre(fwd_splitkv_combine));
    p.registry.add(kernel_of(fwd_splitkv_combine, 256));
    EXPECT_THAT(missing(p.dispatcher.plan(problem)), ElementsAre(fwd_splitkv_combine));
    p.registry.add(kernel_of(fwd_splitkv_combine, 128));
    const ExecutionPlan plan = p.dispatcher.plan(problem);
    EXPECT_THAT(families(plan), ElementsAre(fwd_splitkv, fwd_splitkv_combine));
    EXPECT_TRUE(plan.valid());
    // lse_acc 2*8*4*256 and o_acc 128 times that, fp32.
    EXPECT_EQ(plan.workspace_bytes(), 4 * 2 * 8 * 4 * 256 * (1 + 128));
}

TEST(Plan, BackwardHasThreeStagesInOrder) {
    Planned p;
    using enum KernelFamily;
    p.registry.add(kernel_of(bwd_dq_dk_dv));
    const Problem problem = builder_for(ApiFamily::bwd).build();
    EXPECT_THAT(missing(p.dispatcher.plan(problem)), ElementsAre(bwd_dot_do_o, bwd_convert_dq));
    p.registry.add(kernel_of(bwd_dot_do_o));
    EXPECT_THAT(missing(p.dispatcher.plan(problem)), ElementsAre(bwd_convert_dq));
    p.registry.add(kernel_of(bwd_convert_dq));
    EXPECT_THAT(families(p.dispatcher.plan(problem)),
                ElementsAre(bwd_dot_do_o, bwd_dq_dk_dv, bwd_convert_dq));
}

TEST(Plan, LengthsMakeTheWorkspaceOfBackwardExact) {
    Planned p;
    using enum KernelFamily;
    for (const KernelFamily family : {bwd_dot_do_o, bwd_dq_dk_dv, bwd_convert_dq}) {
        KernelConfig kernel = kernel_of(family);
        kernel.signature.mode = Mode::group;
        kernel.signature.is_deterministic = family != bwd_dot_do_o;
        p.registry.add(kernel);
    }
    const Problem problem = builder_for(ApiFamily::bwd)
                                .group_mode(true)
                                .variable_lengths({.seqstart_q = true, .seqstart_k = true})
                                .dims(128, 128, 2, 0, 0)
                                .nheads(3, 3)
                                .max_seqlen(70, 200)
                                .bwd_flags(false, false, true)
                                .build();
    const ExecutionPlan bound = p.dispatcher.plan(problem);
    ASSERT_TRUE(bound.valid());
    EXPECT_FALSE(bound.workspace_exact());
    // Two numbers of splits and three offsets; two entries of 3 heads, 2 splits and 70 rows.
    EXPECT_EQ(bound.workspace_bytes(), 16 + 32 + 4 * 2 * 3 * 2 * 70 * 128);
    const ExecutionPlan exact = with_lengths(bound, {{5, 70}, {200, 64}});
    EXPECT_TRUE(exact.workspace_exact());
    EXPECT_EQ(exact.workspace_bytes(), 16 + 32 + 4 * 3 * (2 * 5 + 1 * 70) * 128);
    EXPECT_EQ(exact.stages()[1].workspace_bytes, exact.workspace_bytes());
    EXPECT_THROW(with_lengths(bound, {{5, 70, 1}, {200, 64}}), WorkspaceError);
    EXPECT_EQ(
        with_lengths(p.dispatcher.plan(builder_for(ApiFamily::fwd).build()), {{5}, {5}}).workspace_bytes(),
        0);
}

TEST(Plan, KernelThatWritesDqDirectlyHasNoThirdStageAndNoWorkspace) {
    Planned p;
    using enum KernelFamily;
    KernelConfig direct = kernel_of(bwd_dq_dk_dv);
    direct.algorithm.max_seq_len_q = 256;
    p.registry.add(direct);
    p.registry.add(kernel_of(bwd_dot_do_o));
    const ExecutionPlan plan = p.dispatcher.plan(builder_for(ApiFamily::bwd).build());
    EXPECT_TRUE(plan.valid());
    EXPECT_THAT(families(plan), ElementsAre(bwd_dot_do_o, bwd_dq_dk_dv));
    EXPECT_EQ(plan.workspace_bytes(), 0);
}

TEST(Plan, OfTheMainStageAloneNeedsTheWorkspaceTooAndThatOfAnotherSaysNothing) {
    Planned p;
    using enum KernelFamily;
    for (const KernelFamily family : {fwd_splitkv, fwd_splitkv_combine, bwd_dot_do_o, bwd_dq_dk_dv})
        p.registry.add(kernel_of(family));
    const Problem split = builder_for(ApiFamily::fwd_splitkv).num_splits(4).build();
    const ExecutionPlan parts = p.dispatcher.plan_one(identifier(kernel_of(fwd_splitkv)), split);
    EXPECT_EQ(parts.workspace_bytes(), 4 * 2 * 8 * 4 * 256 * (1 + 128));
    EXPECT_EQ(parts.stages()[0].workspace_bytes, parts.workspace_bytes());
    EXPECT_TRUE(parts.workspace_exact());
    EXPECT_EQ(p.dispatcher.plan_one(identifier(kernel_of(fwd_splitkv_combine)), split).workspace_bytes(), 0);
    const Problem gradients = builder_for(ApiFamily::bwd).build();
    // One number of splits, and dQ of two entries, 8 heads, 256 rows and 128 channels in fp32.
    EXPECT_EQ(p.dispatcher.plan_one(identifier(kernel_of(bwd_dq_dk_dv)), gradients).workspace_bytes(),
              16 + 4 * 2 * 8 * 256 * 128);
    EXPECT_EQ(p.dispatcher.plan_one(identifier(kernel_of(bwd_dot_do_o)), gradients).workspace_bytes(), 0);
}

} // namespace
} // namespace fmha
