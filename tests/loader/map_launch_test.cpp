// Launches of kernels whose copies need tensor maps: the runtime encodes those of the arguments, and the kernel gets them.

#include "dispatcher/types/error.hpp"
#include "kernels/loader/hip_kernel.hpp"
#include "kernels/targets/hip/ws_maps.hpp"
#include "tests/loader/fake_runtime.hpp"
#include "tests/support/dense_problem.hpp"

#include <gtest/gtest.h>

namespace fmha::loader::test {
namespace {

KernelConfig kernel() {
    KernelConfig config;
    config.arch = "sm_90";
    config.signature.data_type = DataType::bf16;
    config.signature.hdim_q = config.signature.hdim_v = 128;
    config.algorithm.pipeline = Pipeline::ws;
    config.algorithm.tile = {.m0 = 128, .n0 = 128, .k0 = 16, .n1 = 128, .k1 = 16, .k0max = 128};
    config.algorithm.wave = {.m0 = 2, .n0 = 1, .k0 = 1, .m1 = 2, .n1 = 1, .k1 = 1};
    config.algorithm.warp = {.m0 = 64, .n0 = 128, .k0 = 16, .m1 = 64, .n1 = 128, .k1 = 16};
    config.algorithm.pad = {.s = true, .sk = true, .d = 8, .dv = 8};
    return config;
}

class MapLaunch : public testing::Test {
  protected:
    FakeRuntime runtime;
    // The fake's kernels read no element.
    fmha::test::DenseProblem<FwdArgs, std::uint16_t> problem{
        {2, 4, 2, 300, 500, 128, 128}, ElementType::bf16, [](float) { return std::uint16_t{0}; }};

    MapLaunch() { problem.args.o = problem.query_tensor(128); }

    /// In a code object for the fake's device, also of kernels for other devices.
    HipKernel loaded() {
        const Device device(runtime, 0);
        auto module =
            std::make_shared<const Module>(device, fake_image("gfx950", {{"fmha_ws", kernel()}}), "ws.cubin");
        return {built::BuiltKernel{"ws", kernel(), "fmha_ws", {}}, device, module};
    }
};

TEST_F(MapLaunch, BringsTheMapsOfItsArguments) {
    FwdArgs seen;
    runtime.run = [&](const KernelConfig&, const FwdArgs& given) { seen = given; };
    const FwdArgs& given = problem.args;
    loaded().launch(given, {});
    EXPECT_EQ(seen.k.data, given.k.data);
    EXPECT_EQ(seen.shape.seqlen_k, 500);
    EXPECT_EQ(runtime.last_shape().threads, 384U);
    EXPECT_EQ(runtime.last_shape().blocks, 4U); // one a multiprocessor of the fake, for 24 items
    ASSERT_EQ(runtime.last_maps().size(), 3U);
    // (channel, row, head, entry), strides in bytes
    const hip_target::TensorMapSpec& q = runtime.last_maps()[0];
    EXPECT_EQ(q.extents, (std::array<std::int64_t, 5>{128, 300, 4, 2, 1}));
    EXPECT_EQ(q.strides, (std::array<std::int64_t, 5>{2, 256, 76800, 307200, 16}));
    const hip_target::TensorMapSpec& v = runtime.last_maps()[2];
    EXPECT_EQ(v.base, given.v.data);
    EXPECT_EQ(v.extents, (std::array<std::int64_t, 5>{128, 500, 2, 2, 1}));
}

TEST_F(MapLaunch, RefusesWhatHasNoMap) {
    FwdArgs given = problem.args;
    given.v.row_stride = 129;
    try {
        loaded().launch(given, {});
        FAIL() << "it was launched";
    } catch (const UnsupportedInvocation& reason) {
        EXPECT_EQ(std::string(reason.what()),
                  "v has a stride of 258 bytes; tensor copies take multiples of 16");
    }
}

TEST_F(MapLaunch, SaysWhatTheDriverRefuses) {
    const HipKernel kernel = loaded();
    runtime.failing_call = runtime.calls() + 1; // the second map
    runtime.failure = {1, Fault::other};
    try {
        kernel.launch(problem.args, {});
        FAIL() << "it was launched";
    } catch (const DeviceError& error) {
        EXPECT_EQ(std::string(error.what()).rfind("encoding tensor map 1 of ", 0), 0U) << error.what();
    }
}

} // namespace
} // namespace fmha::loader::test
