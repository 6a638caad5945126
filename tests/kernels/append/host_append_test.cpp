// Append kernels on the host target against the reference.
#include "append_problem.hpp"
#include "append_specs.hpp"
#include "dispatcher/types/error.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "tests/catalog/working_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fmha::host_target {
namespace {

using catalog::test::working_list;
using test::AppendProblem;
using test::AppendSpec;
using test::AppendVerdict;
using testing::HasSubstr;

class HouseAppend : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Architectures, HouseAppend, testing::Values("gfx942", "gfx950", "sm_90"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(HouseAppend, IsRightWithEveryKernel) {
    const std::vector<KernelConfig> kernels = working_list(GetParam(), KernelFamily::fwd_appendkv);
    ASSERT_GE(kernels.size(), 90U);
    std::size_t turn = 0;
    for (const KernelConfig& kernel : kernels) {
        ASSERT_EQ(cannot_execute(kernel), std::nullopt) << identifier(kernel);
        const std::vector<AppendSpec> specs = test::specs_for(kernel);
        // Three problems a kernel, in turn, so that each head dimension and each padding meets all of them.
        for (int n = 0; n < 3; ++n) {
            const AppendSpec& spec = specs[turn++ % specs.size()];
            const AppendProblem problem(kernel, spec);
            run_kernel(kernel, problem.args(), {.threads = 1});
            const AppendVerdict verdict = problem.judge();
            EXPECT_TRUE(verdict.acceptable()) << identifier(kernel) << "\n"
                                              << spec.text() << "\n"
                                              << verdict.text();
        }
    }
}

/// The first kernel of gfx950 with every padding.
KernelConfig padded_kernel(Rope rope, bool paged) {
    for (const KernelConfig& kernel : working_list("gfx950", KernelFamily::fwd_appendkv))
        if (kernel.signature.rope == rope && kernel.signature.use_paged_kv == paged && kernel.algorithm.pad.s)
            return kernel;
    throw Error("the catalogue has no such kernel");
}

TEST(HostAppend, GivesTheSameBitsWithAnyNumberOfThreads) {
    const KernelConfig kernel = padded_kernel(Rope::interleaved, true);
    const AppendSpec spec{.batch = 3, .queries = 70, .added = 90, .cached = {100, 3}, .has_mask = true};
    const AppendProblem one(kernel, spec), many(kernel, spec);
    run_kernel(kernel, one.args(), {.threads = 1});
    run_kernel(kernel, many.args(), {.threads = 5});
    EXPECT_EQ(one.outputs(), many.outputs());
    EXPECT_FALSE(one.untouched());
}

// V-3: keys that do not fit are not written, and all others are.
TEST(HostAppend, NeverWritesOutsideTheCache) {
    for (const bool paged : {false, true}) {
        const KernelConfig kernel = padded_kernel(Rope::half_rotated, paged);
        AppendProblem problem(kernel, {.queries = 0, .added = 70, .cached = {100}});
        // Of 70 new keys the first 60 have room.
        if (paged)
            problem.args().place.block_table_stride = 1, problem.args().shape.batch = 1;
        else
            problem.args().shape.seqlen_k = 160;
        const std::int64_t room = paged ? 28 : 60;
        run_kernel(kernel, problem.args());
        EXPECT_FALSE(problem.untouched());
        problem.args().seqlen_knew = room;
        const AppendVerdict verdict = problem.judge();
        EXPECT_TRUE(verdict.acceptable()) << verdict.text();
    }
}

TEST(HostAppend, WritesToNoPageThatThePoolHasNot) {
    const KernelConfig kernel = padded_kernel(Rope::none, true);
    AppendProblem problem(kernel, {.batch = 1, .added = 3, .cached = {5}});
    for (const std::int32_t page : {-1, -100000, 3, 1 << 30}) {
        problem.args().place.block_table = &page;
        run_kernel(kernel, problem.args());
        EXPECT_TRUE(problem.untouched()) << page;
    }
    const std::int32_t negative = -1;
    AppendProblem lengths(padded_kernel(Rope::interleaved, true), {.batch = 1, .added = 3, .cached = {5}});
    lengths.args().lengths.seqlen_k = &negative;
    run_kernel(padded_kernel(Rope::interleaved, true), lengths.args());
    EXPECT_TRUE(lengths.untouched());
}

TEST(HostAppend, RefusesWhatItCannotTake) {
    const KernelConfig plain = padded_kernel(Rope::none, false),
                       rope = padded_kernel(Rope::interleaved, true);
    AppendProblem problem(plain, {}), rotary(rope, {});
    const auto refusal = [&](const AppendKvArgs& args, const KernelConfig& config) -> std::string {
        try {
            run_kernel(config, args);
        } catch (const UnsupportedInvocation& error) {
            return error.what();
        }
        return "none";
    };
    EXPECT_EQ(refusal(problem.args(), plain), "none");
    EXPECT_EQ(refusal(rotary.args(), rope), "none");
    EXPECT_THAT(refusal(rotary.args(), plain), HasSubstr("the kernel was built without pages"));
    EXPECT_THAT(refusal(problem.args(), rope), HasSubstr("the kernel was built for pages"));
    EXPECT_THAT(refusal(problem.args(), padded_kernel(Rope::interleaved, false)),
                HasSubstr("rope is none, the kernel has interleaved"));
    AppendKvArgs args = rotary.args();
    args.place.block_table = nullptr;
    EXPECT_THAT(refusal(args, rope), HasSubstr("page_size is 128 without a block table"));
    args.seqlen_knew = 0;
    EXPECT_EQ(refusal(args, rope), "none") << "nothing is appended";
    args = rotary.args();
    args.rope.rotary_dim = 8;
    EXPECT_THAT(refusal(args, rope), HasSubstr("rotary_dim is 8; it must be a multiple of 16"));
    args = rotary.args();
    args.q.type = ElementType::fp8_ocp;
    EXPECT_THAT(refusal(args, rope), HasSubstr("tensor q is fp8_ocp"));
    args = rotary.args();
    args.rope.sin.data = nullptr;
    EXPECT_THROW(run_kernel(rope, args), InputError);
    args.seqlen_knew = 0;
    EXPECT_THROW(run_kernel(rope, args), InputError) << "the queries are rotated";
    args.q = {};
    EXPECT_EQ(refusal(args, rope), "none") << "nothing is";
    args = problem.args();
    args.v_new.data = nullptr;
    EXPECT_THROW(run_kernel(plain, args), InputError);
    args.seqlen_knew = 0;
    EXPECT_EQ(refusal(args, plain), "none");
    args = problem.args();
    args.k_new.type = ElementType::fp32;
    EXPECT_THAT(refusal(args, plain), HasSubstr("tensor k_new is fp32"));
    args = problem.args();
    args.lengths.seqlen_k = nullptr;
    EXPECT_THAT(refusal(args, plain), HasSubstr("seqlen_k is absent"));
    args = problem.args();
    args.shape.hdim_v = plain.signature.hdim_v + 8;
    EXPECT_THAT(refusal(args, plain), HasSubstr("exceed the kernel's"));
    EXPECT_THROW(run_kernel(plain, FwdArgs{}), ArgumentTypeError);
}

// The judgement itself: one bit in a copy, two values in a rotated channel, one byte elsewhere.
TEST(AppendVerdicts, SeeWhatIsWrong) {
    const KernelConfig kernel = padded_kernel(Rope::interleaved, false);
    const auto judged = [&](std::int64_t row, std::int64_t channel, std::uint16_t change, bool values) {
        AppendProblem problem(kernel,
                              {.batch = 1, .heads_q = 1, .heads_k = 1, .cached = {5}, .rotary_dim = 16});
        run_kernel(kernel, problem.args());
        EXPECT_TRUE(problem.judge().acceptable());
        const TensorView& view = values ? problem.args().v : problem.args().k;
        auto* const at = static_cast<std::uint16_t*>(view.data) + view.offset(0, 0, row, channel);
        *at = static_cast<std::uint16_t>(*at + change);
        return problem.judge();
    };
    EXPECT_EQ(judged(5, 0, 1, true).wrong_copies, 1);
    EXPECT_EQ(judged(5, 20, 1, false).wrong_copies, 1);
    EXPECT_EQ(judged(5, 3, 3, false).wrong_rotated, 1);
    EXPECT_FALSE(judged(4, 3, 1, false).rest_untouched);
    EXPECT_FALSE(judged(4, 3, 1, true).rest_untouched);
}

} // namespace
} // namespace fmha::host_target
