// Lines of tensors may follow one another in either direction (L-1).

#include "tests/hip_target/emulated/emulated_kernels.hpp"

#include "kernels/targets/hip/emulated/emulated_target.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <initializer_list>
#include <string>

namespace fmha::hip_target::test {
namespace {

using harness::Case;

/// The same lines, the last one first.
void turn_round(TensorView& view, std::int64_t lines) {
    if (!view.present()) return;
    view.data =
        static_cast<std::byte*>(view.data) + (lines - 1) * view.row_stride * element_bits(view.type) / 8;
    view.row_stride = -view.row_stride;
}

/// Computes the rows of a batch from the last to the first, over keys from the last to the first: O and LSE stay what they are.
void emulate_backwards(const KernelConfig& config, const FwdArgs& args) {
    FwdArgs turned = args;
    for (TensorView* view : {&turned.q, &turned.o, &turned.lse, &turned.bias})
        turn_round(*view, args.shape.seqlen_q);
    if (turned.score.bias_type == BiasType::no_bias)
        for (TensorView* view : {&turned.k, &turned.v}) turn_round(*view, args.shape.seqlen_k);
    emulate_kernel(config, turned);
}

class Strides : public testing::TestWithParam<NamedKernel> {};

TEST_P(Strides, MayBeNegative) {
    const KernelConfig& kernel = GetParam().config;
    for (const BiasType bias : {BiasType::no_bias, BiasType::elementwise})
        for (const std::int64_t padding : {0, 8}) {
            Case c = plain_case(kernel);
            c.bias = bias;
            c.stride_padding = padding;
            const auto result = result_of(c, kernel, FittingKernel(kernel, emulate_backwards));
            EXPECT_EQ(result.outcome, harness::Outcome::passed)
                << to_string(bias) << ", padding " << padding << ": " << result.message;
        }
}

/// Lines of micro-scaled types are columns of V, and have scales.
std::vector<NamedKernel> kernels_of_rows() {
    std::vector<NamedKernel> chosen = kernel_of_every_instruction();
    std::erase_if(chosen, [](const NamedKernel& kernel) {
        return plain_case(kernel.config).v_layout == VLayout::column;
    });
    return chosen;
}

INSTANTIATE_TEST_SUITE_P(All, Strides, testing::ValuesIn(kernels_of_rows()),
                         [](const auto& test) { return test.param.name; });

} // namespace
} // namespace fmha::hip_target::test
