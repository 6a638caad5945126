// Backward kernels on the host target against the reference.
#include "backward_problem.hpp"
#include "backward_specs.hpp"
#include "dispatcher/types/error.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "kernels/targets/host/numerics.hpp"
#include "tests/catalog/working_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

namespace fmha::host_target {
namespace {

using test::BackwardChain;
using test::BackwardProblem;
using test::BackwardSinks;
using test::BackwardSpec;
using test::BackwardVerdict;
using testing::HasSubstr;
using testing::ThrowsMessage;

void launch(const KernelConfig& kernel, const BwdArgs& args) {
    run_kernel(kernel, args, {.threads = 1});
}

struct Kernels {
    std::vector<KernelConfig> dots, mains, converts;
    explicit Kernels(std::string_view arch)
        : dots(catalog::test::working_list(arch, KernelFamily::bwd_dot_do_o)),
          mains(catalog::test::working_list(arch, KernelFamily::bwd_dq_dk_dv)),
          converts(catalog::test::working_list(arch, KernelFamily::bwd_convert_dq)) {}
};

void expect_right(const BackwardChain& chain, const BackwardSpec& spec) {
    const BackwardProblem problem(chain, spec);
    problem.run(launch);
    const BackwardVerdict verdict = problem.judge(numerics_of(chain.main));
    EXPECT_TRUE(verdict.acceptable()) << identifier(chain.main) << "\n"
                                      << spec.text() << "\n"
                                      << verdict.text();
}

class HouseBackward : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Architectures, HouseBackward, testing::Values("gfx90a", "gfx950", "gfx1201"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(HouseBackward, TakesEveryKernel) {
    const Kernels kernels(GetParam());
    ASSERT_GE(kernels.mains.size(), 1500U);
    for (const auto* list : {&kernels.dots, &kernels.mains, &kernels.converts})
        for (const KernelConfig& kernel : *list)
            ASSERT_EQ(cannot_execute(kernel), std::nullopt) << identifier(kernel);
}

/// One kernel of every tile with every set of features, head padding and type taking turns.
TEST_P(HouseBackward, IsRightWithEverySetOfFeatures) {
    const Kernels kernels(GetParam());
    std::set<std::tuple<Signature, Tile>> seen;
    std::size_t turn = 0;
    int tried = 0;
    for (const KernelConfig& kernel : kernels.mains) {
        Signature features = kernel.signature;
        const bool large = kernel.signature.hdim_q > 96;
        features.data_type = DataType::fp16;
        // Types, and on large heads modes, take turns: the products are the same.
        ++turn;
        if ((turn * 7 + turn / 5) % 5 != 0) continue;
        if (large) features.mode = Mode::batch;
        if (!seen.emplace(features, kernel.algorithm.tile).second) continue;
        const std::vector<BackwardSpec> specs = test::specs_for(kernel);
        expect_right(test::chain_of(kernel, kernels.dots, kernels.converts), specs[turn % specs.size()]);
        if (HasFailure()) return;
        ++tried;
    }
    EXPECT_GE(tried, 100);
}

TEST(HostBackward, IsRightWithEveryProblem) {
    const Kernels kernels("gfx950");
    int tried = 0;
    for (const KernelConfig& kernel : kernels.mains) {
        if (kernel.signature.hdim_q != 64 || kernel.algorithm.pad.d == 0 || tried++ % 18 != 0) continue;
        for (const BackwardSpec& spec : test::specs_for(kernel))
            expect_right(test::chain_of(kernel, kernels.dots, kernels.converts), spec);
        if (HasFailure()) return;
    }
    EXPECT_GE(tried, 400);
}

/// The first kernel that `wanted` likes.
template <class Wanted>
BackwardChain chain_with(const Kernels& kernels, Wanted wanted) {
    for (const KernelConfig& kernel : kernels.mains)
        if (wanted(kernel)) return test::chain_of(kernel, kernels.dots, kernels.converts);
    throw Error("the catalogue has no such kernel");
}

BackwardChain chain_with(const Kernels& kernels, Mode mode, bool deterministic, MaskClass mask,
                         BiasType bias = BiasType::no_bias) {
    return chain_with(kernels, [&](const KernelConfig& kernel) {
        const Signature& s = kernel.signature;
        return s.mode == mode && s.is_deterministic == deterministic && s.mask == mask && s.bias == bias &&
               s.data_type == DataType::fp16 && s.hdim_q == 64 && kernel.algorithm.pad.d != 0 &&
               kernel.algorithm.max_seq_len_q == 0 && !s.has_dropout;
    });
}

TEST(HostBackward, DeterministicKernelsGiveTheSameBitsWhateverTheWorkspaceHeld) {
    const Kernels kernels("gfx942");
    for (const Mode mode : {Mode::batch, Mode::group})
        for (const MaskClass mask : {MaskClass::none, MaskClass::generic}) {
            const BackwardChain chain = chain_with(kernels, mode, true, mask);
            for (BackwardSpec spec : test::specs_for(chain.main)) {
                spec.sinks = BackwardSinks::normal;
                BackwardProblem problem(chain, spec);
                problem.run(launch);
                const std::vector<std::byte> first = problem.outputs();
                for (int run = 0; run < 3; ++run) {
                    problem.reset(std::byte{0xFF});
                    if (run == 1) { // a recycled workspace: an earlier launch's remains, then prepared again
                        problem.run(launch);
                        problem.layout().prepare(problem.workspace());
                    }
                    problem.run([&](const KernelConfig& kernel, const BwdArgs& args) {
                        run_kernel(kernel, args, {.threads = 1 + 2 * run});
                    });
                    EXPECT_EQ(problem.outputs(), first) << spec.text();
                }
            }
        }
}

/// Upstream's rule would leave splits beyond the logical keys of a group without a mask as they are.
TEST(HostBackward, SplitsBehindTheLastKeyMustBeCleared) {
    const BackwardChain chain = chain_with(Kernels("gfx942"), Mode::group, true, MaskClass::none);
    const std::int64_t n0 = chain.main.algorithm.tile.n0;
    const BackwardSpec spec{.seqlen_q = {20}, .seqlen_k = {3 * n0}, .logical_k = {n0 - 2}};
    BackwardProblem problem(chain, spec);
    ASSERT_EQ(problem.layout().nsplits.front(), 3);
    ASSERT_TRUE(problem.layout().size.zero_dq_acc);
    problem.run(launch);
    EXPECT_TRUE(problem.judge(numerics_of(chain.main)).acceptable());
    problem.reset();
    BwdWorkspaceLayout upstream = problem.layout();
    upstream.size.zero_dq_acc = false;
    std::ranges::fill(problem.workspace(), std::byte{0xFF});
    upstream.prepare(problem.workspace());
    problem.run(launch);
    EXPECT_FALSE(problem.judge(numerics_of(chain.main)).acceptable());
}

TEST(HostBackward, AlibiStaysAccurateFarFromTheFirstKey) {
    const Kernels kernels("gfx942");
    bool deterministic = false;
    for (const MaskArgs& mask :
         {MaskArgs{MaskType::bottom_right, -1, 0}, MaskArgs{MaskType::bottom_right, 500, 0}, MaskArgs{}}) {
        const BackwardChain chain =
            chain_with(kernels, Mode::batch, deterministic, MaskClass::generic, BiasType::alibi);
        deterministic = !deterministic;
        BackwardSpec spec{
            .heads = 4, .seqlen_q = {5}, .seqlen_k = {70000}, .hdim_q = 8, .hdim_v = 8, .mask = mask};
        for (const float slope : {0.5F, -0.5F}) {
            spec.slope = slope;
            expect_right(chain, spec);
        }
    }
}

TEST(HostBackward, NeedsRandomBytesWhereAPairIs) {
    const BackwardChain chain = chain_with(Kernels("gfx942"), [](const KernelConfig& kernel) {
        return kernel.signature.is_store_randval && kernel.signature.mode == Mode::batch;
    });
    for (const std::int64_t keys : {0, 70}) {
        BackwardProblem problem(chain, {.seqlen_k = {keys}});
        problem.args().randval.data = nullptr;
        const auto run = [&] { run_kernel(chain.main, problem.args()); };
        if (keys == 0)
            EXPECT_NO_THROW(run());
        else
            EXPECT_THAT(run, ThrowsMessage<InputError>(HasSubstr("randval.data is NULL")));
    }
}

TEST(HostBackward, RefusesWhatItCannotTake) {
    const BackwardChain chain = chain_with(Kernels("gfx942"), Mode::batch, true, MaskClass::none);
    BackwardProblem problem(chain, {});
    const auto refusal = [&](const KernelConfig& kernel, const BwdArgs& args) -> std::string {
        try {
            run_kernel(kernel, args);
        } catch (const UnsupportedInvocation& error) {
            return error.what();
        }
        return "none";
    };
    EXPECT_EQ(refusal(chain.dot, problem.args()), "none");
    EXPECT_EQ(refusal(chain.main, problem.args()), "none");
    EXPECT_EQ(refusal(chain.convert, problem.args()), "none");
    BwdArgs args = problem.args();
    args.workspace = nullptr;
    EXPECT_THAT(refusal(chain.main, args), HasSubstr("workspace is NULL"));
    EXPECT_THAT(refusal(chain.convert, args), HasSubstr("workspace is NULL"));
    args.workspace = static_cast<std::byte*>(problem.args().workspace) + 4;
    EXPECT_THAT(refusal(chain.main, args), HasSubstr("not aligned to 16 bytes"));
    args = problem.args();
    args.deterministic = false;
    EXPECT_THAT(refusal(chain.main, args), HasSubstr("deterministic is false, the kernel was built for it"));
    args = problem.args();
    args.dropout.p_drop = 0.5F;
    EXPECT_THAT(refusal(chain.main, args), HasSubstr("p_drop=0.5 needs a kernel with dropout"));
    args = problem.args();
    args.mask.sink = 1;
    EXPECT_THAT(refusal(chain.main, args), HasSubstr("sink tokens"));
    float sink = 0.0F;
    args = problem.args();
    args.d_sink = &sink;
    EXPECT_THAT(refusal(chain.dot, args), HasSubstr("no sink logits"));
    args = problem.args();
    args.dbias = args.dq;
    EXPECT_THAT(refusal(chain.main, args), HasSubstr("does not store it"));
    args = problem.args();
    args.dk.type = ElementType::fp32;
    EXPECT_THAT(refusal(chain.main, args), HasSubstr("tensor dk is fp32, the kernel takes fp16"));
    args = problem.args();
    args.dv.data = nullptr;
    EXPECT_THROW(run_kernel(chain.main, args), InputError) << "it has elements";
    const BackwardChain direct = chain_with(Kernels("gfx950"), [](const KernelConfig& kernel) {
        return kernel.algorithm.max_seq_len_q > 0 && !kernel.signature.has_dropout;
    });
    BackwardProblem shared(direct, {.seqlen_q = {5}});
    EXPECT_EQ(refusal(direct.main, shared.args()), "none");
    shared.args().reduce_dk_dv = true;
    EXPECT_THAT(refusal(direct.main, shared.args()), HasSubstr("writes dK and dV of every query head"));
    EXPECT_THROW(run_kernel(chain.main, FwdArgs{}), ArgumentTypeError);
    EXPECT_THROW(problem.layout().prepare(problem.workspace().first(100)), WorkspaceError);
    EXPECT_THROW(problem.layout().prepare({problem.workspace().data() + 4, problem.workspace().size()}),
                 WorkspaceError);
}

} // namespace
} // namespace fmha::host_target
