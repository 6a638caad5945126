#include "kernels/targets/hip/cannot_execute.hpp"

#include "kernels/arch/arch.hpp"
#include "kernels/catalog/catalog.hpp"
#include "kernels/targets/hip/block_plan.hpp"

#include <gmock/gmock.h>

#include <functional>

namespace fmha::hip_target {
namespace {

using testing::HasSubstr;

KernelConfig plain() {
    KernelConfig config;
    config.arch = "gfx942";
    config.signature.data_type = DataType::fp16;
    config.signature.hdim_q = config.signature.hdim_v = 128;
    config.algorithm.tile = {.m0 = 128, .n0 = 128, .k0 = 32, .n1 = 128, .k1 = 32, .k0max = 128};
    config.algorithm.wave = {4, 1, 1, 4, 1, 1, 1, 1, 1};
    config.algorithm.warp = {32, 32, 16, 32, 32, 16, 16, 16, 16};
    return config;
}

TEST(CannotExecute, NamesWhatIsInTheWay) {
    ASSERT_EQ(cannot_execute(plain()), std::nullopt);
    const auto reason = [](const std::function<void(KernelConfig&)>& spoil) {
        KernelConfig config = plain();
        spoil(config);
        return cannot_execute(config).value_or("");
    };
    EXPECT_EQ(reason([](auto& c) { c.signature.family = KernelFamily::fwd_splitkv; }),
              "the HIP target has no program for family fwd_splitkv, only for fwd");
    EXPECT_THAT(reason([](auto& c) { c.signature.use_paged_kv = true; }), HasSubstr("paged keys"));
    EXPECT_THAT(reason([](auto& c) { c.signature.qscale = QScale::kv_blockscale; }),
                HasSubstr("batch_prefill"));
    EXPECT_THAT(reason([](auto& c) {
                    c.signature.data_type = DataType::mxfp8;
                    c.signature.qscale = QScale::mx;
                }),
                HasSubstr("scaled matrix instructions"));
    EXPECT_THAT(reason([](auto& c) { c.arch = "gfx900"; }), HasSubstr("instructions of gfx900"));
    EXPECT_EQ(reason([](auto& c) { c.algorithm.warp.k0 = 4; }),
              "gfx942 has no matrix instruction 32x32x4 or 32x32x16 for fp16");
    EXPECT_EQ(reason([](auto& c) { c.algorithm.warp.m1 = 8; }),
              "gfx942 has no matrix instruction 32x32x16 or 8x32x16 for fp16");
    EXPECT_THAT(reason([](auto& c) { c.algorithm.warp.m1 = c.algorithm.warp.n1 = 16; }),
                HasSubstr("32x32 and 16x16"));
    EXPECT_THAT(reason([](auto& c) { c.algorithm.wave.n0 = 2; }), HasSubstr("must own whole rows"));
    EXPECT_EQ(reason([](auto& c) { c.algorithm.tile.m0 = 64; }),
              "64 rows do not divide into 4 waves of whole instructions");
    EXPECT_THAT(reason([](auto& c) { c.algorithm.tile.n1 = 48; }), HasSubstr("n1=48"));
    EXPECT_THAT(reason([](auto& c) {
                    c.signature.data_type = DataType::fp32;
                    c.algorithm.warp = {32, 32, 8, 32, 32, 2, 1, 1, 1};
                }),
                HasSubstr("2 keys are too few"));
    EXPECT_THAT(reason([](auto& c) { c.signature.hdim_q = 256; }), HasSubstr("k0max=128"));
    EXPECT_THAT(reason([](auto& c) { c.algorithm.tile.k0 = c.algorithm.tile.k0max = 1024; }),
                HasSubstr("bytes of LDS, gfx942 has 65536"));
}

TEST(CannotExecute, NothingOfTheHouseCatalogueButMx) {
    const auto archs = arch::ArchSet::built_in();
    for (const auto* name : {"gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "sm_90"}) {
        catalog::Request request;
        request.rules = catalog::RuleSet::house;
        request.targets = {archs.at(name).name()};
        request.families = catalog::FamilySet::of(KernelFamily::fwd);
        int executed = 0;
        for (const KernelConfig& config : catalog::list(archs, request)) {
            const bool mx = config.signature.qscale == QScale::mx;
            const auto reason = cannot_execute(config);
            EXPECT_EQ(reason.has_value(), mx) << identifier(config) << ": " << reason.value_or("");
            EXPECT_TRUE(mx || plan_of(config).problem == PlanProblem::none) << identifier(config);
            executed += reason ? 0 : 1;
        }
        EXPECT_GT(executed, 2000) << name;
    }
}

} // namespace
} // namespace fmha::hip_target
