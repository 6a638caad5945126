// Why a name is in `claim`, `stored` or `sweep`, and which rule keeps another out.

#include "tests/catalog/audit_helpers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace fmha::catalog::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Why ask(RuleSet rules, std::string_view name, std::string_view profile = "0",
        std::string_view arch = "gfx950") {
    return why(arch::ArchSet::built_in(), request_for(rules, arch, profile), name);
}

std::vector<std::string> removing(const Why& answer) {
    std::vector<std::string> ids;
    for (const WhyStep& step : answer.steps)
        if (step.removes) ids.push_back(step.id);
    return ids;
}

std::vector<std::string> tables(const Why& answer) {
    std::vector<std::string> ids;
    for (const WhyStep& step : answer.steps)
        if (step.kind == WhyStep::Kind::table) ids.push_back(step.id);
    return ids;
}

constexpr auto h128_async =
    "fmha_fwd_fp16_batch_h128_qr_async_t64x128x32x128x32x128_pad1011_mask=no_bias=no_lse=1";

TEST(AuditWhy, ListedNameSaysItsTableEntry) {
    const Why answer = ask(RuleSet::claim, h128_async);
    EXPECT_TRUE(answer.listed);
    EXPECT_THAT(removing(answer), IsEmpty());
    EXPECT_THAT(tables(answer), Contains("tables/rules/forward_cdna.json#/forward_tiles/4/tiles/2"));
}

TEST(AuditWhy, TheClauseThatTellsStoredFromClaim) {
    const Why answer = ask(RuleSet::stored, h128_async);
    EXPECT_FALSE(answer.listed);
    ASSERT_TRUE(answer.config);
    EXPECT_THAT(removing(answer), ElementsAre("RULES-H128-ASYNC"));
}

TEST(AuditWhy, ProfileAndListRemove) {
    EXPECT_THAT(
        removing(ask(RuleSet::claim,
                     "fmha_fwd_fp16_batch_h128_qr_async_t64x128x32x128x32x128_pad1011_mask=no_bias=no_sink=1",
                     "flash_fwd")),
        ElementsAre("RECEIPT-FORWARD"));
    // bf8 belongs to the architecture but not to the lists of the claim.
    EXPECT_THAT(
        removing(ask(RuleSet::claim,
                     "fmha_fwd_appendkv_bf8_batch_h64_appendkv_t64x64x64x64x32x128_pad1111_mask=no_bias=no")),
        ElementsAre("ALLOW-DATA-TYPE"));
}

TEST(AuditWhy, FeatureRulesRemove) {
    EXPECT_THAT(
        removing(
            ask(RuleSet::stored,
                "fmha_fwd_fp16_group_h32_qr_async_t128x64x16x32x32x32_pad1011_mask=no_bias=alibi_logits=1")),
        ElementsAre("FEATURE-LOGITS-BIAS", "FEATURE-GROUP-PAD"));
    EXPECT_THAT(
        removing(ask(RuleSet::stored, "fmha_batch_prefill_fp16_group_h128_qr_async_t128x128x32x128x32x128_"
                                      "pad1111_mask=no_bias=no_pkv=1")),
        ElementsAre("FEATURE-PAGE-LAYOUT"));
}

TEST(AuditWhy, TileRulesOfTheSweepRemove) {
    const auto name = [](std::string_view tile) {
        return "fmha_fwd_fp16_batch_h128_qr_async_t" + std::string(tile) + "_pad1011_mask=no_bias=no_bpc=-1";
    };
    EXPECT_TRUE(ask(RuleSet::sweep, name("128x128x32x128x32x128_w32x32x16")).listed);
    EXPECT_THAT(removing(ask(RuleSet::sweep, name("128x96x32x128x32x128_w32x32x16"))),
                Contains("SWEEP-GFX9"));
    EXPECT_THAT(removing(ask(RuleSet::sweep, name("128x128x96x128x32x128_w32x32x16"))),
                Contains("SWEEP-K0-DIVIDES"));
    EXPECT_THAT(removing(ask(RuleSet::sweep, name("128x128x16x128x32x128_w16x16x32"))),
                Contains("SWEEP-WARP-MULTIPLE"));
    EXPECT_THAT(tables(ask(RuleSet::sweep, name("128x128x32x128x32x128_w32x32x16"))),
                Contains("tables/sweep/tables.json#/m0/3"));
}

TEST(AuditWhy, NameThatNoTableGives) {
    const Why answer = ask(
        RuleSet::stored, "fmha_fwd_fp16_batch_h32_qr_async_t77x64x16x32x32x32_pad1011_mask=no_bias=no_lse=1");
    EXPECT_FALSE(answer.listed);
    EXPECT_FALSE(answer.config);
    EXPECT_THAT(answer.nearest, HasSubstr("_h32_qr_async_t128x64x16x32x32x32_"));
    EXPECT_FALSE(ask(RuleSet::stored, "no such thing").config);
}

TEST(AuditWhy, ANameThatIsNearlyOneOfMillions) {
    const std::string listed =
        "fmha_fwd_fp16_batch_h128_qr_async_t128x128x32x128x32x128_w32x32x16_pad1111_mask=no_bias=no_bpc=-1";
    ASSERT_TRUE(ask(RuleSet::sweep, listed).listed);
    const auto nearest_to = [&](const std::string& from, const std::string& to) {
        std::string name = listed;
        return ask(RuleSet::sweep, name.replace(name.find(from), from.size(), to)).nearest;
    };
    EXPECT_EQ(nearest_to("mask=no", "mask=none"), listed);
    EXPECT_EQ(nearest_to("_bpc=-1", ""), listed)
        << "of names that differ by what they add, the one that adds least";
    // A mistake in the tokens by which the search is narrowed.
    EXPECT_EQ(nearest_to("fmha_fwd_", "fmha_fdw_"), listed);
    EXPECT_THAT(nearest_to("_h128_", "_h129_"), HasSubstr("fmha_fwd_fp16_batch_h"));
    EXPECT_THAT(nearest_to("_fp16_", "_fp61_"), HasSubstr("_batch_h128_qr_async_t128x128x32x128x32x128_"));
    EXPECT_EQ(ask(RuleSet::sweep, "no such thing").nearest, "");
}

TEST(AuditWhy, FamilyOfTheRequestRemoves) {
    Request request = request_for(RuleSet::claim, "gfx950");
    request.families = FamilySet::of(KernelFamily::bwd_dot_do_o);
    const Why answer =
        why(arch::ArchSet::built_in(), request,
            "fmha_bwd_convert_dq_fp16_group_h256_qr_t64x128x32x128x32x128_pad1101_mask=no_bias=no");
    EXPECT_FALSE(answer.listed);
    EXPECT_THAT(removing(answer), ElementsAre("family"));
}

TEST(AuditWhy, AgreesWithTheListForEveryHundredthName) {
    for (const RuleSet rules : {RuleSet::claim, RuleSet::stored}) {
        const auto list = names(request_for(rules, "gfx950"));
        for (std::size_t i = 0; i < list.size(); i += 997) EXPECT_TRUE(ask(rules, list[i]).listed) << list[i];
    }
}

TEST(AuditWhy, RuleIdsAreUniqueAndEachSetListsItsOwn) {
    for (const RuleSet rules : {RuleSet::claim, RuleSet::stored, RuleSet::sweep}) {
        const auto rows = rules_of(rules);
        for (std::size_t i = 0; i < rows.size(); ++i)
            EXPECT_EQ(std::ranges::count(rows, rows[i].id, &RuleRow::id), 1) << rows[i].id;
    }
    const auto has = [](RuleSet rules, std::string_view id) {
        const auto rows = rules_of(rules);
        return std::ranges::find(rows, id, &RuleRow::id) != rows.end();
    };
    EXPECT_TRUE(has(RuleSet::stored, "RULES-H128-ASYNC"));
    EXPECT_FALSE(has(RuleSet::claim, "RULES-H128-ASYNC"));
    EXPECT_FALSE(has(RuleSet::claim, "SWEEP-LDS"));
}

} // namespace
} // namespace fmha::catalog::test
