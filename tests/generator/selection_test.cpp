// Kernels that must not exist are refused with their rule; kernels that no target executes are listed.

#include "dispatcher/types/error.hpp"
#include "tests/generator/catalogue.hpp"

#include <gmock/gmock.h>

#include <algorithm>

namespace fmha::generator {
namespace {

using testing::HasSubstr;

const arch::ArchSet& archs() {
    static const arch::ArchSet set = arch::ArchSet::built_in();
    return set;
}

KernelConfig good() {
    return test::house_fwd("gfx942").front();
}

std::string rule_of(const KernelConfig& config) {
    const auto finding = forbidden(archs(), config);
    return finding ? std::string(finding->id) : "";
}

TEST(Forbidden, NothingOfTheWorkingList) {
    for (const auto& arch : archs().all()) {
        if (!arch.has_rule_set("house")) continue;
        const auto list = test::house_fwd(arch.name());
        for (std::size_t i = 0; i < list.size(); i += 997)
            EXPECT_EQ(rule_of(list[i]), "") << named(list[i]).name;
    }
}

TEST(Forbidden, NamesTheValidationRule) {
    KernelConfig config = good();
    config.signature.hdim_q = 100;
    EXPECT_EQ(rule_of(config), "VR-01");
    config = good();
    config.signature.data_type = DataType::mxfp4;
    EXPECT_EQ(rule_of(config), "VR-02");
    config = good();
    config.algorithm.tile.m0 = 100;
    EXPECT_EQ(rule_of(config), "VR-07");
    EXPECT_THAT(forbidden(archs(), config)->message, HasSubstr("tile extent m = 100"));
}

TEST(Forbidden, NamesTheHardwareThatIsMissing) {
    const auto list = test::house_fwd("gfx942");
    KernelConfig config = *std::ranges::find_if(list, [](const KernelConfig& c) {
        return c.signature.data_type == DataType::fp16 && c.algorithm.pipeline == Pipeline::qr;
    });
    config.arch = "gfx1100"; // its instructions are 16x16x16
    const auto finding = forbidden(archs(), config);
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->id, "HW");
    EXPECT_THAT(finding->message, HasSubstr("gfx1100 has no matrix instruction 32x32"));
}

TEST(Forbidden, NamesTheRuleOfTheCatalogue) {
    for (KernelConfig config : test::house_fwd("gfx942")) {
        if (config.signature.mask != MaskClass::causal) continue;
        config.signature.has_sink = config.signature.has_sink_logit = true;
        EXPECT_EQ(rule_of(config), "H2") << "causal kernels take no sinks";
        return;
    }
    FAIL() << "no causal kernel";
}

TEST(Forbidden, UnknownArchitecturesAreNotRules) {
    KernelConfig config = good();
    config.arch = "gfx000";
    EXPECT_THROW(forbidden(archs(), config), InputError);
}

TEST(Selection, ListsWhatNoGpuRuns) {
    std::vector<KernelConfig> two{catalog::test::working_list("gfx950", KernelFamily::bwd_dot_do_o).front()};
    two.push_back(two.front());
    two.back().algorithm.tile.m0 = 32;
    const Selection selection = select(two);
    EXPECT_EQ(selection.kernels.size(), 1U);
    ASSERT_EQ(selection.declined.size(), 1U);
    EXPECT_THAT(selection.declined.front().reason, HasSubstr("64 rows in a tile"));
}

TEST(Selection, LosesNothing) {
    const auto list = test::house_fwd("gfx950");
    const Selection selection = select(list);
    EXPECT_EQ(selection.kernels.size() + selection.declined.size(), list.size());
}

} // namespace
} // namespace fmha::generator
