// The declarations of GPU kernels about their arithmetic (tolerances B.1).

#include "kernels/targets/hip/numerics.hpp"

#include <gtest/gtest.h>

namespace fmha::hip_target::test {
namespace {

Numerics declared(ArchName arch, DataType type) {
    KernelConfig config;
    config.arch = arch;
    config.signature.data_type = type;
    return numerics_of(config);
}

TEST(HipNumerics, Fp32IsTf32OnNvidiaOnly) {
    EXPECT_EQ(declared("sm_90", DataType::fp32).u_m, 0x1p-11);
    EXPECT_EQ(declared("sm_90", DataType::fp32).u_p, 0x1p-11);
    EXPECT_EQ(declared("sm_90", DataType::bf16).u_m, 0.0);
    for (const char* arch : {"gfx90a", "gfx942", "gfx950"}) {
        EXPECT_EQ(declared(arch, DataType::fp32).u_m, 0.0) << arch;
        EXPECT_EQ(declared(arch, DataType::fp32).u_p, 0.0) << arch;
        EXPECT_EQ(declared(arch, DataType::fp32).u_a, 0x1p-24) << arch;
        EXPECT_FALSE(declared(arch, DataType::fp32).truncating) << arch;
    }
}

TEST(HipNumerics, UnitsThatMayTruncateSaySo) {
    for (const char* arch : {"sm_90", "gfx942", "gfx950", "gfx1100", "gfx1151", "gfx1201"}) {
        EXPECT_EQ(declared(arch, DataType::fp16).u_a, 0x1p-23) << arch;
        EXPECT_TRUE(declared(arch, DataType::fp16).truncating) << arch;
    }
    EXPECT_EQ(declared("gfx90a", DataType::fp16).u_a, 0x1p-24);
    EXPECT_FALSE(declared("gfx90a", DataType::fp16).truncating);
}

TEST(HipNumerics, Cdna2LosesSubnormalWeights) {
    EXPECT_EQ(declared("gfx90a", DataType::fp16).f_p, 0x1p-14);
    EXPECT_EQ(declared("gfx942", DataType::fp16).f_p, 0x1p-25);
    EXPECT_EQ(declared("gfx90a", DataType::bf16).f_p, 0x1p-126);
}

TEST(HipNumerics, StorageIsThatOfEveryTarget) {
    EXPECT_EQ(declared("gfx942", DataType::fp8bf16).p_shift, 7);
    EXPECT_EQ(declared("gfx950", DataType::fp8bf16).p_shift, 8);
    EXPECT_EQ(declared("gfx950", DataType::fp8bf16).u_p, 0x1p-4);
    EXPECT_EQ(declared("gfx950", DataType::mxfp8).p_shift, 8);
    EXPECT_EQ(declared("gfx950", DataType::mxfp8).u_p, 0x1p-4);
    EXPECT_EQ(declared("gfx950", DataType::mxfp4).u_p, 0x1p-2);
    EXPECT_EQ(declared("gfx950", DataType::mxfp4).f_p, 0x1p-4)
        << "half of 0.5, times the scale of a weight of 1";
    EXPECT_EQ(declared("sm_90", DataType::bf16).u_o, 0x1p-8);
    EXPECT_EQ(declared("sm_90", DataType::fp16).f_o, 0x1p-25);
}

} // namespace
} // namespace fmha::hip_target::test
