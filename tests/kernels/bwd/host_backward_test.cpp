// Backward kernels on the host target against the reference.
#include "backward_problem.hpp"
#include "backward_specs.hpp"
#include "dispatcher/types/error.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "kernels/targets/host/numerics.hpp"
#include "reference/backward.hpp"
#include "reference/numerics/formats.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
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

void launch(const KernelConfig& kernel, const BwdArgs& args) {
    run_kernel(kernel, args, {.threads = 1});
}

struct Kernels {
    std::vector<KernelConfig> dots, mains, converts;
    explicit Kernels(std::string_view arch)
        : dots(test::house_kernels(arch, KernelFamily::bwd_dot_do_o)),
          mains(test::house_kernels(arch, KernelFamily::bwd_dq_dk_dv)),
          converts(test::house_kernels(arch, KernelFamily::bwd_convert_dq)) {}
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
                    if (run == 1) { // a recycled workspace: what an earlier launch left, then prepared again
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
        spec.slope = 0.5F;
        expect_right(chain, spec);
    }
}

TEST(HostBackward, ScalingDoByAPowerOfTwoScalesEveryGradient) {
    const Kernels kernels("gfx942");
    for (const bool group : {false, true}) {
        const BackwardChain chain = chain_with(kernels, group ? Mode::group : Mode::batch, true,
                                               MaskClass::generic, BiasType::elementwise);
        KernelConfig in_fp32 = chain.main;
        for (const KernelConfig& kernel : kernels.mains)
            if (kernel.signature.data_type == DataType::fp32 && kernel.signature.is_deterministic &&
                kernel.signature.mode == chain.main.signature.mode && kernel.signature.has_dbias &&
                kernel.signature.hdim_q == 64)
                in_fp32 = kernel;
        ASSERT_EQ(in_fp32.signature.data_type, DataType::fp32);
        const BackwardChain fp32 = test::chain_of(in_fp32, kernels.dots, kernels.converts);
        for (BackwardSpec spec : test::specs_for(in_fp32)) {
            spec.sinks = BackwardSinks::normal;
            BackwardProblem problem(fp32, spec);
            problem.run(launch);
            const std::vector<std::byte> before = problem.outputs();
            // Every stored dO that is a number, times 4.
            const TensorView& d_o = problem.args().d_o;
            auto* values = static_cast<float*>(d_o.data);
            const std::int64_t count =
                problem.args().shape.mode == Mode::batch
                    ? d_o.batch_stride * problem.args().shape.batch
                    : std::int64_t{problem.args().lengths.seqstart_q[problem.args().shape.batch]} *
                          spec.heads * (problem.args().shape.hdim_v + spec.gap);
            for (std::int64_t n = 0; n < count; ++n) values[n] *= 4.0F;
            problem.reset();
            problem.run(launch);
            const std::vector<std::byte> after = problem.outputs();
            ASSERT_EQ(before.size(), after.size());
            for (std::size_t n = 0; n + 4 <= before.size(); n += 4) {
                float x = 0.0F, y = 0.0F;
                std::memcpy(&x, before.data() + n, 4);
                std::memcpy(&y, after.data() + n, 4);
                if (!std::isfinite(x) || std::abs(x) < 0x1p-100F)
                    continue; // no gradient, or near the end of fp32
                ASSERT_EQ(4.0F * x, y) << spec.text() << " at " << n;
            }
        }
    }
}

/// The same memory with heads and entries counted from the other end.
void turn(TensorView& view, std::int64_t batch, std::int64_t heads) {
    if (!view.present()) return;
    const std::int64_t last = (batch - 1) * view.batch_stride + (heads - 1) * view.head_stride;
    view.data = static_cast<std::byte*>(view.data) + element_bytes(view.type, last);
    view.batch_stride = -view.batch_stride;
    view.head_stride = -view.head_stride;
}

TEST(HostBackward, PermutingHeadsAndEntriesPermutesEveryGradient) {
    const Kernels kernels("gfx942");
    for (const BiasType bias : {BiasType::no_bias, BiasType::elementwise}) {
        const BackwardChain chain = chain_with(kernels, Mode::batch, true, MaskClass::generic, bias);
        const BackwardSpec spec{.batch = 3,
                                .heads = 4,
                                .kv_heads = 2,
                                .seqlen_q = {70},
                                .seqlen_k = {300},
                                .mask = {MaskType::bottom_right, 100, 0}};
        BackwardProblem problem(chain, spec);
        problem.run(launch);
        const std::vector<std::byte> before = problem.outputs();
        problem.reset();
        BwdArgs& args = problem.args();
        const TensorView as_laid_out = args.dk;
        for (TensorView* view : {&args.k, &args.v}) turn(*view, spec.batch, spec.kv_heads);
        for (TensorView* view : {&args.q, &args.o, &args.lse, &args.d_o, &args.d, &args.dq, &args.dk,
                                 &args.dv, &args.bias, &args.dbias})
            turn(*view, spec.batch, spec.heads);
        problem.run(launch);
        EXPECT_EQ(problem.outputs(), before) << to_string(bias);
        // The comparison sees heads that are mixed up: with dK as it was, it holds other heads' gradients.
        problem.reset();
        args.dk = as_laid_out;
        problem.run(launch);
        EXPECT_NE(problem.outputs(), before) << to_string(bias);
    }
}

/// The stored bits of one element of an fp16 tensor.
std::uint16_t* bits_of(const TensorView& view, std::int64_t b, std::int64_t h, std::int64_t j,
                       std::int64_t c) {
    return static_cast<std::uint16_t*>(view.data) + view.offset(b, h, j, c);
}

/// dK or dV of one key as numbers.
std::vector<double> line_of(const TensorView& view, std::int64_t b, std::int64_t h, std::int64_t j,
                            std::int64_t cols) {
    std::vector<double> values;
    for (std::int64_t c = 0; c < cols; ++c)
        values.push_back(reference::decode(view.type, *bits_of(view, b, h, j, c)));
    return values;
}

/// The largest distance between a reduced gradient and the sum of those of the query heads, in units of the limits of both.
double distance_of_reduced(const BackwardProblem& reduced, const BackwardProblem& each,
                           const Numerics& numerics, std::int64_t heads) {
    const auto expected_of = [&](const BackwardProblem& problem) {
        reference::GradientOptions options;
        options.numerics = numerics;
        options.threads = 1;
        return reference::backward(problem.args(), {{}, reference::all_keys(problem.args()), false, false},
                                   options);
    };
    const reference::Gradients sums = expected_of(reduced), parts = expected_of(each);
    double worst = 0.0;
    for (const bool of_k : {true, false}) {
        const reference::GradientTable &sum_table = of_k ? sums.dk : sums.dv,
                                       &part_table = of_k ? parts.dk : parts.dv;
        const auto values = [&](const BackwardProblem& problem, const reference::KeyId& id) {
            return line_of(of_k ? problem.args().dk : problem.args().dv, id.b, id.h, id.j, sum_table.cols);
        };
        std::vector<double> limit(sum_table.value.size()), difference(limit.size());
        const auto line_of_key = [&](const reference::KeyId& id) {
            return std::ranges::find(sums.request.keys, id) - sums.request.keys.begin();
        };
        const auto add = [&](const reference::Gradients& gradients, const reference::GradientTable& table,
                             const BackwardProblem& problem, std::int64_t line, double sign) {
            reference::KeyId id = gradients.request.keys[static_cast<std::size_t>(line)];
            const std::vector<double> got = values(problem, id);
            const reference::GradientBound bound(gradients, table, line,
                                                 reference::GradientBound::Stored::tag);
            if (sign < 0.0) id.h /= heads;
            for (std::int64_t c = 0; c < table.cols; ++c) {
                difference[sum_table.at(line_of_key(id), c)] += sign * got[static_cast<std::size_t>(c)];
                limit[sum_table.at(line_of_key(id), c)] += bound.limit(c);
            }
        };
        for (std::int64_t line = 0; line < sum_table.lines; ++line) add(sums, sum_table, reduced, line, 1.0);
        for (std::int64_t line = 0; line < part_table.lines; ++line) add(parts, part_table, each, line, -1.0);
        for (std::size_t n = 0; n < limit.size(); ++n)
            worst = std::max(worst, difference[n] == 0.0 ? 0.0 : std::abs(difference[n]) / limit[n]);
    }
    return worst;
}

TEST(HostBackward, ReducedGradientsAreTheSumsOverTheHeads) {
    const Kernels kernels("gfx942");
    for (const bool deterministic : {false, true}) {
        const BackwardChain chain =
            chain_with(kernels, Mode::batch, deterministic, MaskClass::generic, BiasType::elementwise);
        BackwardSpec spec{.batch = 2,
                          .heads = 6,
                          .kv_heads = 2,
                          .seqlen_q = {70},
                          .seqlen_k = {150},
                          .mask = {MaskType::bottom_right, 60, 0},
                          .compute_units = 3};
        const BackwardProblem each(chain, spec);
        spec.reduce_dk_dv = true;
        BackwardProblem reduced(chain, spec);
        each.run(launch);
        reduced.run(launch);
        const Numerics numerics = numerics_of(chain.main);
        EXPECT_LE(distance_of_reduced(reduced, each, numerics, 3), 1.0);
        // The comparison sees a head that is missing.
        const TensorView& dk = reduced.args().dk;
        for (std::int64_t c = 0; c < reduced.args().shape.hdim_q; ++c)
            *bits_of(dk, 1, 1, 100, c) = *bits_of(each.args().dk, 1, 3, 100, c);
        EXPECT_GT(distance_of_reduced(reduced, each, numerics, 3), 1.0);
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
