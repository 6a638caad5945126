// The demands of a launch of block-scaled and packed types on the arguments, the same for all targets.

#include "kernels/targets/cannot_launch.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <string>
#include <utility>

namespace fmha::targets {
namespace {

using testing::HasSubstr;

KernelConfig mxfp4_kernel() {
    KernelConfig config;
    config.arch = "gfx950";
    config.signature.data_type = DataType::mxfp4;
    config.signature.qscale = QScale::mx;
    config.signature.v_layout = VLayout::column;
    config.signature.hdim_q = config.signature.hdim_v = 128;
    return config;
}

FwdArgs mxfp4_args() {
    static char memory[1];
    const auto view = [](ElementType type, std::int64_t row_stride, std::int64_t col_stride) {
        return TensorView{memory, type, 1 << 20, 1 << 16, row_stride, col_stride};
    };
    FwdArgs args;
    args.shape.hdim_q = args.shape.hdim_v = 128;
    args.q = args.k = view(ElementType::fp4, 128, 1);
    args.v = view(ElementType::fp4, 1, 256);
    args.o = view(ElementType::fp32, 128, 1);
    args.quant.qscale = QScale::mx;
    args.quant.q_descale = args.quant.k_descale = view(ElementType::e8m0, 3, 1);
    args.quant.v_descale = view(ElementType::e8m0, 1, 7);
    return args;
}

std::string reason(const std::function<void(FwdArgs&)>& spoil) {
    FwdArgs args = mxfp4_args();
    spoil(args);
    return cannot_launch(mxfp4_kernel(), args).value_or("");
}

TEST(CannotLaunch, PackedElementsInTheMiddleOfAByte) {
    EXPECT_EQ(reason([](FwdArgs&) {}), "");
    EXPECT_THAT(reason([](FwdArgs& args) { args.q.row_stride = 129; }),
                HasSubstr("tensor q of fp4 has row stride 129"));
    EXPECT_THAT(reason([](FwdArgs& args) { args.k.head_stride = 7; }), HasSubstr("T-2"));
    EXPECT_THAT(reason([](FwdArgs& args) { args.v.col_stride = 255; }), HasSubstr("tensor v"));
    EXPECT_THAT(reason([](FwdArgs& args) { args.v.row_stride = 2; }), HasSubstr("T-2"));
}

TEST(CannotLaunch, ScalesThatAreNoLinesOfBytes) {
    EXPECT_THAT(reason([](FwdArgs& args) { args.quant.k_descale.col_stride = 2; }),
                HasSubstr("tensor k_descale of e8m0"));
    EXPECT_THAT(reason([](FwdArgs& args) { args.quant.v_descale.col_stride = 1 << 22; }), HasSubstr("4 MiB"));
    EXPECT_EQ(reason([](FwdArgs& args) { args.quant.v_descale.col_stride = (1 << 22) - 1; }), "");
}

// Descales are constant within a tile, so that only a kernel says which blocks it takes.
TEST(CannotLaunch, ScaleBlocksThatEndWithinATile) {
    KernelConfig config;
    config.signature.qscale = QScale::blockscale;
    config.algorithm.tile.m0 = 128;
    config.algorithm.tile.n0 = 64;
    const auto refused = [&](std::int64_t q, std::int64_t k) {
        QuantArgs quant;
        quant.qscale = QScale::blockscale;
        quant.block_scale_size_q = q;
        quant.block_scale_size_k = k;
        return wrong_quant(config, quant).value_or("");
    };
    EXPECT_EQ(refused(128, 64), "");
    EXPECT_EQ(refused(256, 192), "");
    for (const auto& [q, k] : {std::pair{64, 64}, {192, 64}, {128, 32}, {128, 96}, {0, 64}, {128, -64}})
        EXPECT_THAT(refused(q, k), HasSubstr("not positive multiples of the tile's m0=128 and n0=64"));
}

TEST(CannotLaunch, GroupModeWithoutStarts) {
    KernelConfig config;
    config.arch = "gfx950";
    config.signature.hdim_q = config.signature.hdim_v = 128;
    config.signature.mode = Mode::group;
    const std::int32_t starts[] = {0, 5};
    FwdArgs args;
    args.shape.mode = Mode::group;
    args.shape.hdim_q = args.shape.hdim_v = 128;
    for (TensorView* view : {&args.q, &args.k, &args.v, &args.o})
        view->type = element_types(config.signature.data_type, fp8_flavour(config.arch)).q;
    args.quant.qscale = config.signature.qscale;
    EXPECT_EQ(cannot_launch(config, args), "group mode needs the array seqstart_q (N-2)");
    args.lengths.seqstart_q = starts;
    EXPECT_EQ(cannot_launch(config, args), "group mode needs the array seqstart_k (N-2)");
    args.lengths.seqstart_k = starts;
    EXPECT_EQ(cannot_launch(config, args), std::nullopt);
    EXPECT_EQ(wrong_lengths(args.shape, {.seqstart_q = starts}, true), std::nullopt) << "pages have the keys";
}

} // namespace
} // namespace fmha::targets
