// Cases about offsets see a kernel that keeps 32 bits of a stride, for every tensor that they put far apart.

#include "tests/harness/faulty_kernels.hpp"

#include "kernels/targets/host/host_target.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <variant>

namespace fmha::harness::test {
namespace {

void cut(TensorView& view) {
    view.batch_stride = static_cast<std::uint32_t>(view.batch_stride);
}

template <class Args>
void cut_all(Args& args) {
    for (TensorView* const view : {&args.q, &args.k, &args.v}) cut(*view);
    if constexpr (requires { args.o; }) cut(args.o);
    if constexpr (requires { args.lse; }) cut(args.lse);
    if constexpr (requires { args.bias; }) cut(args.bias);
    if constexpr (requires { args.randval; }) cut(args.randval);
    if constexpr (requires { args.k_new; }) {
        cut(args.k_new);
        cut(args.v_new);
    }
    if constexpr (requires { args.partials; }) {
        cut(args.partials.o_acc);
        cut(args.partials.lse_acc);
    }
    if constexpr (requires { args.dq; })
        for (TensorView* const view : {&args.d_o, &args.d, &args.dq, &args.dk, &args.dv, &args.dbias})
            cut(*view);
}

void launch(const KernelConfig& config, const Invocation& invocation) {
    host_target::make_instance(config)->launch(invocation, {});
}
void launch_with_narrow_strides(const KernelConfig& config, const Invocation& invocation) {
    Invocation cut = invocation;
    std::visit(
        [](auto& args) {
            if constexpr (requires { args.q; }) cut_all(args);
        },
        cut);
    launch(config, cut);
}

class WideStrides : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Families, WideStrides,
                         testing::Values("fwd/offsets_2_31", "bwd/offsets_2_31", "splitkv/offsets_2_31",
                                         "pagedkv/offsets_2_31", "appendkv/offsets_2_31",
                                         "batch_prefill/offsets_2_31"));

TEST_P(WideStrides, AreNoticedWhereAKernelKeeps32BitsOfThem) {
    int wide = 0;
    for (const Case& c : cases_of(GetParam())) {
        if (c.wide_batch_stride >> 32U == 0) continue;
        ++wide;
        EXPECT_EQ(first_red({c}, launch), "");
        EXPECT_NE(first_red({c}, launch_with_narrow_strides), "") << c.id;
    }
    EXPECT_GE(wide, 3);
}

} // namespace
} // namespace fmha::harness::test
