// `claim` and `stored`: counts that follow by hand from the products and tables, names, order, profiles.

#include "tests/catalog/audit_helpers.hpp"

#include "dispatcher/types/error.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace fmha::catalog::test {
namespace {

using enum KernelFamily;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

struct FamilyCount {
    KernelFamily family;
    std::size_t stored, claim;
};

class FamilyCounts : public testing::TestWithParam<FamilyCount> {};

TEST_P(FamilyCounts, OfGfx950AtReceiptZero) {
    const auto& [family, stored, claim] = GetParam();
    EXPECT_EQ(count(request_for(RuleSet::stored, "gfx950"), family), stored);
    EXPECT_EQ(count(request_for(RuleSet::claim, "gfx950"), family), claim);
}

INSTANTIATE_TEST_SUITE_P(
    Rules, FamilyCounts,
    testing::Values(FamilyCount{fwd, 15316, 11980}, FamilyCount{fwd_splitkv, 3024, 2952},
                    FamilyCount{fwd_splitkv_combine, 156, 138}, FamilyCount{fwd_pagedkv, 360, 252},
                    FamilyCount{fwd_appendkv, 102, 99}, FamilyCount{batch_prefill, 2964, 5928},
                    FamilyCount{bwd_dot_do_o, 60, 60}, FamilyCount{bwd_dq_dk_dv, 12000, 12000},
                    FamilyCount{bwd_convert_dq, 132, 132}),
    [](const auto& test) { return std::string(to_string(test.param.family)); });

TEST(Rules, TotalsOfGfx950) {
    EXPECT_EQ(count(request_for(RuleSet::claim, "gfx950")), 33541U);
    EXPECT_EQ(count(request_for(RuleSet::stored, "gfx950")), 34114U);
}

TEST(Rules, ForwardOfClaimPerDataType) {
    std::map<std::string, std::size_t> found;
    Request request = request_for(RuleSet::claim, "gfx950");
    request.families = FamilySet::of(fwd);
    enumerate(arch::ArchSet::built_in(), request,
              [&](const KernelConfig& c) { ++found[std::string(to_string(c.signature.data_type))]; });
    // Seven tiles of 144 qr and 432 qr_async kernels, one more on 128x128, 960 at 256, 3 x 24 trload twice, 8
    // v3.
    const std::size_t half = 7 * 576 + 576 + 960 + 144 + 8;
    const std::map<std::string, std::size_t> expected{
        {"fp16", half}, {"bf16", half}, {"fp8bf16", 432}, {"fp8fp32", 108}};
    EXPECT_EQ(found, expected);
}

TEST(Rules, StoredTotalsByProfileAndArchitecture) {
    const std::map<std::string, std::array<std::size_t, 5>> totals{
        // profile, then gfx90a, gfx942, gfx950, gfx1100, gfx1201
        {"0", {28584, 30474, 34114, 18312, 18312}},   {"1", {33192, 35082, 39298, 18312, 18312}},
        {"2", {18294, 18420, 19180, 16422, 16422}},   {"3", {28584, 30474, 34114, 18312, 18312}},
        {"4", {19080, 19206, 20318, 16440, 16440}},   {"100", {28584, 29286, 32926, 18312, 18312}},
        {"200", {28584, 29142, 32782, 18312, 18312}}, {"300", {28584, 30474, 34114, 18312, 18312}},
        {"400", {28584, 30474, 34114, 18312, 18312}}, {"600", {28584, 29142, 32782, 18312, 18312}},
        {"800", {17880, 18006, 18006, 15288, 15288}}, {"801", {25704, 27450, 31090, 15432, 15432}},
        {"888", {18168, 18978, 19194, 18168, 18168}}};
    const std::array archs{"gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"};
    for (const auto& [profile, expected] : totals)
        for (std::size_t i = 0; i < archs.size(); ++i)
            EXPECT_EQ(count(request_for(RuleSet::stored, archs[i], profile)), expected[i])
                << archs[i] << " at " << profile;
}

TEST(Rules, ProfileNamesAreAliasesOfNumbers) {
    for (const RuleSet rules : {RuleSet::claim, RuleSet::stored})
        for (const ProfileRow& row : profiles()) {
            if (row.number < 0) continue;
            EXPECT_EQ(emission_digest(request_for(rules, "gfx950", to_string(row.id))),
                      emission_digest(request_for(rules, "gfx950", std::to_string(row.number))))
                << to_string(row.id);
        }
}

TEST(Rules, GroupProfilesUniteTheirMembers) {
    const auto sorted = [](const char* profile) {
        auto list = names(request_for(RuleSet::stored, "gfx950", profile));
        std::ranges::sort(list);
        return list;
    };
    std::vector<std::string> united;
    std::ranges::set_union(sorted("fp32_all"), sorted("fp32_min"), std::back_inserter(united));
    EXPECT_EQ(sorted("fp32"), united);
    EXPECT_GT(count(request_for(RuleSet::stored, "gfx950", "all")),
              count(request_for(RuleSet::stored, "gfx950", "ck_default")));
}

TEST(Rules, FirstAndLastNames) {
    Request request = request_for(RuleSet::stored, "gfx950");
    request.families = FamilySet::of(fwd);
    EXPECT_EQ(names(request).front(),
              "fmha_fwd_bf16_batch_h32_qr_async_t128x64x16x32x32x32_pad1011_mask=no_bias=no_"
              "lse=1_drop=1_logits=1_sink=1_skip=1");
    request.families = FamilySet::of(bwd_convert_dq);
    EXPECT_EQ(names(request).back(),
              "fmha_bwd_convert_dq_fp16_group_h256_qr_t64x128x32x128x32x128_pad1101_mask=no_bias=no");
}

TEST(Rules, ClaimHasPrefillInBothModesAndStoredInGroupModeOnly) {
    for (const RuleSet rules : {RuleSet::claim, RuleSet::stored}) {
        Request request = request_for(rules, "gfx942");
        request.families = FamilySet::of(batch_prefill);
        std::size_t batch = 0, group = 0;
        enumerate(arch::ArchSet::built_in(), request,
                  [&](const KernelConfig& c) { ++(c.signature.mode == Mode::batch ? batch : group); });
        EXPECT_EQ(group, 2964U);
        EXPECT_EQ(batch, rules == RuleSet::claim ? 2964U : 0U);
    }
}

TEST(Rules, NoForwardKernelOnRdnaBecauseEveryTileHasSixtyFourRows) {
    for (const char* arch : {"gfx1100", "gfx1201", "gfx1101"}) {
        EXPECT_EQ(count(request_for(RuleSet::stored, arch), fwd), 0U) << arch;
        EXPECT_EQ(count(request_for(RuleSet::stored, arch), bwd_dq_dk_dv), 12000U) << arch;
    }
}

TEST(Rules, UnknownArchitectureTakesTheTypesOfGfx950AndTheTilesOfItsGeneration) {
    // gfx94x has the tiles of gfx942 and all of its types, but not the trload kernels of gfx950.
    EXPECT_EQ(count(request_for(RuleSet::stored, "gfx940"), fwd), 11676U);
    // No table starts like gfx10: no forward tile at all.
    EXPECT_EQ(count(request_for(RuleSet::stored, "gfx1030"), fwd), 0U);
    EXPECT_THROW(count(request_for(RuleSet::stored, "sm_90")), InputError);
}

TEST(Rules, NoNameTwice) {
    for (const RuleSet rules : {RuleSet::claim, RuleSet::stored})
        for (const char* arch : {"gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"}) {
            auto list = names(request_for(rules, arch, "1"));
            std::ranges::sort(list);
            EXPECT_EQ(std::ranges::adjacent_find(list), list.end()) << arch;
        }
}

TEST(Rules, OptionsOfOtherRuleSetsAreRefused) {
    Request request = request_for(RuleSet::claim, "gfx950");
    request.optdim = {128};
    EXPECT_THROW(count(request), InputError);
    request = request_for(RuleSet::claim, "gfx950");
    request.exhaustive = true;
    EXPECT_THROW(count(request), InputError);
    request.rules = RuleSet::ck;
    EXPECT_THROW(count(request), InputError);
}

} // namespace
} // namespace fmha::catalog::test
