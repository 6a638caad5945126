#include "dispatcher/explain/explain.hpp"

#include "tests/dispatcher/kernels.hpp"

#include <gmock/gmock.h>

namespace fmha {
namespace {

using testing::builder_for;
using testing::fwd_kernel;
using testing::instance;
using testing::kernel_of;

TEST(Explain, EmptyRegistry) {
    const Registry registry;
    EXPECT_EQ(to_text(explain(Dispatcher(registry), builder_for(ApiFamily::bwd).build())),
              "no complete plan for bwd fp16 batch b2 h8/2 sq256 sk512 d128/128 arch=gfx950\n"
              "policy seqtune, 0 kernels registered\n"
              "missing: bwd_dot_do_o, bwd_dq_dk_dv, bwd_convert_dq\n"
              "bwd_dot_do_o: no kernel\n"
              "  no kernel of this family is registered\n"
              "bwd_dq_dk_dv: no kernel\n"
              "  no kernel of this family is registered\n"
              "bwd_convert_dq: no kernel\n"
              "  no kernel of this family is registered\n");
}

TEST(Explain, ShowsWhatTheNumberOfSplitsFollowsFrom) {
    Registry registry;
    const auto told = [&](const char* arch, std::int64_t units, std::int64_t batch, std::int64_t splits = 0) {
        Problem problem = builder_for(ApiFamily::fwd_splitkv)
                              .dims(128, 128, batch, 1, 100)
                              .nheads(1, 1)
                              .num_splits(splits)
                              .build();
        problem.arch = arch;
        const Dispatcher dispatcher(registry, {{problem.arch, units, 64}});
        const std::string text = to_text(explain(dispatcher, problem));
        const auto from = text.find("num_splits"), to = text.find("fwd_splitkv: ");
        return from == std::string::npos ? "" : text.substr(from, to - from);
    };
    EXPECT_EQ(told("gfx950", 304, 1),
              "num_splits 109 by S-6: a launch without splits has 1 of the 608 blocks that fit, 2 on each of "
              "304 compute units\n"
              "  the fewest of 1 to 128 splits whose rounds of blocks are 0.85 as full as the fullest: 109, "
              "0.179 of 0.211\n");
    EXPECT_EQ(told("gfx950", 4, 7),
              "num_splits 1 by S-6: a launch without splits has 7 of the 8 blocks that fit, 2 on each of 4 "
              "compute units\n"
              "  from 0.8 of them on nothing is split\n");
    EXPECT_EQ(
        told("sm_90", 132, 1),
        "num_splits 1 by S-9: a launch without splits has 1 of the 132 blocks that fit, 1 on each of 132 "
        "compute units\n"
        "  the fewest of 1 to 128 splits whose rounds of blocks are 0.95 as full as the fullest: 122, "
        "0.924 of 0.970\n"
        "  bounded by the tiles of keys: 1\n");
    EXPECT_EQ(told("gfx950", 0, 1), "num_splits 1 by S-6: the number of compute units is not known\n");
    EXPECT_EQ(told("gfx950", 304, 1, 3), "") << "the caller's own number follows from nothing";
    const Json json = to_json(explain(
        Dispatcher(registry, {{"gfx950", 304, 64}}),
        builder_for(ApiFamily::fwd_splitkv).dims(128, 128, 1, 1, 100).nheads(1, 1).num_splits(0).build()));
    EXPECT_EQ(json.at("splits").at("num_splits"), Json(109));
    EXPECT_EQ(json.at("splits").at("compute_units"), Json(304));
}

TEST(Explain, NearestRefusalsComeClosestFirst) {
    Registry registry;
    registry.add(instance(fwd_kernel(64, 64), "narrow"));
    KernelConfig no_tail = fwd_kernel();
    no_tail.algorithm.pad.sk = false;
    registry.add(instance(no_tail, "no_tail"));
    KernelConfig far = fwd_kernel(64, 64);
    far.signature.data_type = DataType::bf16;
    far.arch = "gfx942";
    registry.add(instance(far, "far"));
    const Problem problem = builder_for(ApiFamily::fwd).dims(128, 128, 2, 256, 1000).build();
    EXPECT_EQ(to_text(explain(Dispatcher(registry), problem, 2)),
              "no complete plan for fwd fp16 batch b2 h8/2 sq256 sk1000 d128/128 arch=gfx950\n"
              "policy seqtune, 3 kernels registered\n"
              "missing: fwd\n"
              "fwd: no kernel\n"
              "  0 of 3 kernels of this family take it; nearest of the others, closest first:\n"
              "  no_tail\n"
              "    seqlen_k is 1000, this kernel has no key tail: positive multiple of 128 required\n"
              "    fix: pad the key length to the multiple, or register a kernel with pad_sk\n"
              "  narrow\n"
              "    hdim_q is 128, this kernel takes at most 64 (1 more conditions fail)\n"
              "    fix: register a kernel with a larger head dimension\n"
              "  others: 1 wrong_arch\n");
}

TEST(Explain, RunnerUpSaysWhyItLost) {
    Registry registry;
    registry.add(instance(fwd_kernel(128, 128, 64), "small"));
    registry.add(instance(fwd_kernel(128, 128, 128), "large"));
    registry.add(instance(fwd_kernel(256, 256), "wide"));
    const Dispatcher dispatcher(registry);
    const Explanation explained = explain(dispatcher, builder_for(ApiFamily::fwd).build());
    ASSERT_EQ(explained.stages.size(), 1U);
    EXPECT_EQ(explained.stages[0].kernel, "small");
    ASSERT_TRUE(explained.stages[0].runner_up);
    EXPECT_EQ(explained.stages[0].runner_up->kernel, "large");
    EXPECT_EQ(explained.stages[0].runner_up->criterion, "category");
    EXPECT_EQ(explained.stages[0].accepted, 3U);
    const auto json = to_json(explained);
    EXPECT_EQ(json["stages"][0]["runner_up"]["winner_value"], 1);
    EXPECT_EQ(json["stages"][0]["runner_up"]["value"], 2);
    EXPECT_EQ(json["valid"], true);
}

TEST(Explain, TheRunnerUpIsTheKernelThatComesNext) {
    Registry registry;
    registry.add(instance(fwd_kernel(128, 128, 128), "small head"));
    registry.add(instance(fwd_kernel(256, 256, 32), "small tile"));
    registry.add(instance(fwd_kernel(256, 256, 128), "large tile"));
    const Dispatcher dispatcher(registry);
    const Problem problem = builder_for(ApiFamily::fwd).dims(128, 128, 1, 1000, 1000).build();
    const Explanation first = explain(dispatcher, problem);
    EXPECT_EQ(first.stages[0].kernel, "small head");
    ASSERT_TRUE(first.stages[0].runner_up);
    registry.filter([&](const KernelEntry& entry) { return registry.name_of(entry) != "small head"; });
    EXPECT_EQ(explain(dispatcher, problem).stages[0].kernel, first.stages[0].runner_up->kernel);
    EXPECT_EQ(first.stages[0].runner_up->kernel, "large tile");
}

TEST(Explain, SuperfluousStagesAreNotMissing) {
    Registry registry;
    KernelConfig direct = kernel_of(KernelFamily::bwd_dq_dk_dv);
    direct.algorithm.max_seq_len_q = 256;
    registry.add(direct);
    registry.add(kernel_of(KernelFamily::bwd_dot_do_o));
    const Explanation explained = explain(Dispatcher(registry), builder_for(ApiFamily::bwd).build());
    EXPECT_TRUE(explained.plan.valid());
    EXPECT_FALSE(explained.stages[2].needed);
    EXPECT_THAT(to_text(explained), ::testing::HasSubstr("bwd_convert_dq: not needed"));
}

TEST(Explain, CountsKernelsThatTheHeuristicInvented) {
    Registry registry;
    registry.add(instance(fwd_kernel(128, 128, 64), "small"));
    registry.add(instance(fwd_kernel(128, 128, 128), "large"));
    Dispatcher dispatcher(registry);
    dispatcher.set_heuristic([](const Problem&) {
        return std::vector<std::string>{"nonsense", identifier(fwd_kernel(8, 8)), identifier(fwd_kernel())};
    });
    const Explanation explained = explain(dispatcher, builder_for(ApiFamily::fwd).build());
    EXPECT_EQ(explained.heuristic_unknown, 2U);
    EXPECT_EQ(explained.stages[0].kernel, "large");
    EXPECT_TRUE(explained.stages[0].chosen_by_heuristic);
    EXPECT_THAT(to_text(explained),
                ::testing::HasSubstr("the heuristic named 2 kernels that are not registered"));
}

/// The kernel that the policy would take ranks above the one that runs.
TEST(Explain, ARunnerUpLosesAgainstAHeuristicOnNoCriterion) {
    Registry registry;
    registry.add(instance(fwd_kernel(128, 128, 64), "small"));
    registry.add(instance(fwd_kernel(128, 128, 128), "large"));
    Dispatcher dispatcher(registry);
    const auto prefer = [&](const KernelConfig& kernel) {
        dispatcher.set_heuristic([name = identifier(kernel)](const Problem&) { return std::vector{name}; });
        return explain(dispatcher, builder_for(ApiFamily::fwd).build());
    };
    const Explanation against = prefer(fwd_kernel(128, 128, 128));
    ASSERT_TRUE(against.stages[0].runner_up);
    EXPECT_EQ(against.stages[0].runner_up->kernel, "small");
    EXPECT_THAT(to_text(against),
                ::testing::HasSubstr("runner-up small\n    lost on the preference of the heuristic\n"));
    // Where it prefers what the policy takes, too, the criterion still says why the other one lost.
    const Explanation alike = prefer(fwd_kernel(128, 128, 64));
    EXPECT_EQ(alike.stages[0].kernel, "small");
    EXPECT_FALSE(alike.stages[0].chosen_by_heuristic);
    ASSERT_TRUE(alike.stages[0].runner_up);
    EXPECT_EQ(alike.stages[0].runner_up->criterion, "category");
}

TEST(Explain, JsonOfARefusalCarriesFieldValueLimitAndFix) {
    Registry registry;
    registry.add(instance(fwd_kernel(64, 64), "narrow"));
    const auto json = to_json(explain(Dispatcher(registry), builder_for(ApiFamily::fwd).build()));
    const auto& miss = json["stages"][0]["nearest"][0];
    EXPECT_EQ(miss["kernel"], "narrow");
    EXPECT_EQ(miss["reason"], "hdim_q_too_large");
    EXPECT_EQ(miss["field"], "hdim_q");
    EXPECT_EQ(miss["value"], "128");
    EXPECT_EQ(miss["limit"], "64");
    EXPECT_EQ(miss["failures"], 2);
}

} // namespace
} // namespace fmha
