// "Why is this name in the list, or why not" for rule sets ck and house.

#include "tests/catalog/catalog_support.hpp"

#include <gmock/gmock.h>

namespace fmha::catalog::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> removers(const Why& answer) {
    std::vector<std::string> ids;
    for (const WhyStep& step : answer.steps)
        if (step.removes) ids.push_back(step.id);
    return ids;
}

const std::string listed =
    "fmha_fwd_d256_fp16_group_b128x128x32x256x32x256_r4x1x1_r4x1x1_w32x32x16_w32x32x16_qr_vr_"
    "psskddv_nlogits_alibi_mask_lse_ndropout_nskip_nqscale_ntrload_nsink_gfx9.cpp";

std::string with(std::string name, const std::string& old_words, const std::string& new_words) {
    return name.replace(name.find(old_words), old_words.size(), new_words);
}

TEST(WhyCk, ListedNameComesFromTableEntries) {
    const Why answer = why(archs(), request(RuleSet::ck, {"gfx942"}), listed);
    EXPECT_TRUE(answer.listed);
    ASSERT_GE(answer.steps.size(), 2U);
    EXPECT_EQ(answer.steps[0].id, "tables/ck/gfx9.json#/families/fwd/tiles/14/tiles/0");
    EXPECT_EQ(answer.steps[1].id, "tables/ck/gfx9.json#/families/fwd/pipelines/1/entries/2");
    EXPECT_THAT(removers(answer), IsEmpty());
    EXPECT_THAT(answer.to_string(), HasSubstr("passes R4"));
}

TEST(WhyCk, RulesThatRemoveANameAreNamed) {
    const Request r = request(RuleSet::ck, {"gfx942"});
    Why answer = why(archs(), r, with(listed, "nlogits_alibi", "logits_alibi"));
    EXPECT_FALSE(answer.listed);
    EXPECT_THAT(removers(answer), ElementsAre("R3"));
    answer = why(archs(), r, with(listed, "psskddv", "npad"));
    EXPECT_THAT(removers(answer), ElementsAre("R1"));
    // Two faults at once: a narrow tile that no qr pipeline takes, and group mode without padding.
    answer = why(archs(), r,
                 "fmha_fwd_d64_fp16_group_b16x32x64x64x32x64_r1x1x1_r1x1x1_w16x16x32_w16x16x32_qr_vr_npad_"
                 "nlogits_bias_"
                 "mask_lse_dropout_skip_nqscale_ntrload_sink_gfx9.cpp");
    EXPECT_THAT(removers(answer), ElementsAre("R1", "R4"));
}

TEST(WhyCk, OptionsThatRemoveANameAreNamed) {
    EXPECT_THAT(removers(why(archs(), request(RuleSet::ck, {"gfx942"}, "fp32_all"), listed)),
                ElementsAre("profile"));
    Request r = request(RuleSet::ck, {"gfx942"});
    r.optdim = {64};
    EXPECT_THAT(removers(why(archs(), r, listed)), ElementsAre("optdim"));
    r = request(RuleSet::ck, {"gfx942"});
    r.filters[0] = "*bf16*";
    EXPECT_THAT(removers(why(archs(), r, listed)), ElementsAre("filter"));
    r = request(RuleSet::ck, {"gfx942"});
    r.families = families_of(ApiFamily::bwd);
    EXPECT_THAT(removers(why(archs(), r, listed)), ElementsAre("family"));
    const std::string extended =
        "fmha_fwd_d64_fp16_batch_b128x64x32x64x32x64_r4x1x1_r4x1x1_w32x32x16_w32x32x16_qr_vr_psskddv_"
        "nlogits_nbias_mask_lse_ndropout_nskip_nqscale_ntrload_nsink_gfx9.cpp";
    EXPECT_THAT(removers(why(archs(), request(RuleSet::ck, {"gfx942"}), extended)),
                ElementsAre("only_extended"));
    EXPECT_TRUE(why(archs(), request(RuleSet::ck, {"gfx942"}, "1"), extended).listed);
}

TEST(WhyCk, BackwardNamesOneOfManyTraits) {
    const Request r = request(RuleSet::ck, {"gfx942"});
    EXPECT_TRUE(why(archs(), r, "fmha_bwd_dot_do_o_d64_fp16_b64_group_o2_psdv_gfx9.cpp").listed);
    EXPECT_THAT(removers(why(archs(), r, "fmha_bwd_dot_do_o_d64_fp16_b64_group_o2_pdv_gfx9.cpp")),
                Contains("B1"));
    EXPECT_TRUE(
        why(archs(), r, "fmha_bwd_convert_dq_d64_fp16_b64_batch_o2_npad_deterministic_gfx9.cpp").listed);
}

TEST(WhyCk, UnknownNamesHaveANearestOne) {
    const Why answer =
        why(archs(), request(RuleSet::ck, {"gfx942"}), with(listed, "b128x128x32x256", "b128x64x32x256"));
    EXPECT_FALSE(answer.config.has_value());
    EXPECT_EQ(answer.nearest, listed);
    EXPECT_THAT(answer.to_string(),
                HasSubstr("no entry gives \"b128x64x32x256x32x256\"; the nearest listed name "
                          "has \"b128x128x32x256x32x256\" there"));
    EXPECT_EQ(why(archs(), request(RuleSet::ck, {"gfx942"}), "no such kernel").nearest, "");
}

TEST(WhyHouse, TellsTableRulesAndHardware) {
    const std::string name =
        "fwd_gfx950_bf8_batch_h256x256_qr_async_t128x128x32x256x32x256_w4x1x1x4x1x1_i32x32x32x32x32x32_"
        "psskd1dv1_vcol_sink";
    const Why answer = why(archs(), request(RuleSet::house, {"gfx950"}), name);
    EXPECT_TRUE(answer.listed) << answer.to_string();
    EXPECT_THAT(answer.steps[1].text, HasSubstr("HX-03"));
    const Why absent = why(archs(), request(RuleSet::house, {"gfx90a"}), with(name, "gfx950", "gfx90a"));
    EXPECT_FALSE(absent.listed);
    EXPECT_THAT(removers(absent), ElementsAre("HW"));
    EXPECT_THAT(
        removers(why(archs(), request(RuleSet::house, {"gfx950"}), with(name, "_vcol_sink", "_vcol"))),
        ElementsAre("tables"));
}

TEST(Why, EveryRuleSetListsItsRules) {
    for (const RuleSet rules : {RuleSet::ck, RuleSet::house}) {
        std::set<std::string_view> ids;
        for (const RuleRow& row : rules_of(rules)) {
            EXPECT_FALSE(row.says.empty());
            EXPECT_TRUE(ids.insert(row.id).second) << row.id;
        }
    }
}

} // namespace
} // namespace fmha::catalog::test
