// Filters, the order of families, the custom factory switch and spellings of rule set ck.

#include "dispatcher/types/error.hpp"
#include "kernels/catalog/glob.hpp"
#include "tests/catalog/catalog_support.hpp"

#include <gmock/gmock.h>

namespace fmha::catalog::test {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

std::string& filter(Request& r, ApiFamily api) {
    return r.filters[static_cast<std::size_t>(api)];
}

TEST(Glob, MatchesWholeNames) {
    EXPECT_TRUE(glob_match("*", ""));
    EXPECT_TRUE(glob_match("a*c", "abbc"));
    EXPECT_FALSE(glob_match("a*c", "abbcd"));
    EXPECT_TRUE(glob_match("?[a-c][!x]", "zbq"));
    EXPECT_FALSE(glob_match("?[a-c][!x]", "zbx"));
    EXPECT_TRUE(glob_match("[]]", "]"));
    EXPECT_TRUE(glob_match("a[b", "a[b")) << "an unclosed bracket stands for itself";
    EXPECT_FALSE(glob_match("A*", "ab")) << "case matters";
    EXPECT_TRUE(glob_match("*a*b*c*", "xxaxxbxxc"));
    EXPECT_FALSE(glob_match("", "a"));
}

TEST(CkOptions, FilterSeesTheNameWithoutSuffix) {
    Request r = request(RuleSet::ck, {"gfx942"});
    r.families = only({KernelFamily::fwd});
    filter(r, ApiFamily::fwd) = "*_d256_fp16_*_nsink";
    const auto listed = names(archs(), r);
    EXPECT_THAT(listed, Not(testing::IsEmpty()));
    EXPECT_THAT(listed, Each(AllOf(HasSubstr("_d256_fp16_"), EndsWith("_nsink_gfx9.cpp"))));
    filter(r, ApiFamily::fwd) = "*_gfx9.cpp";
    EXPECT_THAT(names(archs(), r), testing::IsEmpty());
}

TEST(CkOptions, SplitFilterHasCombineFirst) {
    Request r = request(RuleSet::ck, {"gfx942"});
    r.families = families_of(ApiFamily::fwd_splitkv);
    filter(r, ApiFamily::fwd_splitkv) = "*_d64_fp8_*@*_d32_fp16_*";
    for (const std::string& name : names(archs(), r))
        EXPECT_THAT(name, HasSubstr(name.find("combine") != std::string::npos ? "_d64_fp8_" : "_d32_fp16_"));
    filter(r, ApiFamily::fwd_splitkv) = "@*_d32_fp16_*";
    EXPECT_EQ(names(archs(), r).size(), 138U + 192U) << "an empty part accepts all";
}

TEST(CkOptions, BackwardFilterDropsWholeTraits) {
    Request r = request(RuleSet::ck, {"gfx942"});
    r.families = families_of(ApiFamily::bwd);
    filter(r, ApiFamily::bwd) = "*_npad@*"; // dot_do_o without padding: batch mode, no padded hdim_v
    for (const std::string& name : names(archs(), r))
        EXPECT_THAT(name, AllOf(HasSubstr("_batch_"), Not(HasSubstr("dv1_"))));
    filter(r, ApiFamily::bwd) = "*@@*";
    EXPECT_THAT(names(archs(), r), testing::IsEmpty()) << "a part that is there and empty matches nothing";
}

TEST(CkOptions, GlobalLoadTwinsFollowTheirKernel) {
    Request r = request(RuleSet::ck, {"gfx950"});
    r.families = only({KernelFamily::batch_prefill});
    filter(r, ApiFamily::batch_prefill) = "*_ps16_bload_*_nsink_linear_vllm";
    const auto listed = names(archs(), r);
    ASSERT_EQ(listed.size() % 2, 0U);
    ASSERT_GE(listed.size(), 2U);
    for (std::size_t i = 0; i < listed.size(); i += 2) {
        std::string twin = listed[i];
        twin.replace(twin.find("bload"), 5, "gload");
        EXPECT_EQ(listed[i + 1], twin);
    }
    filter(r, ApiFamily::batch_prefill) = "*_gload_*";
    EXPECT_THAT(names(archs(), r), testing::IsEmpty()) << "the filter looks at the buffer-load kernel";
}

TEST(CkOptions, FamiliesComeInOrder) {
    Request r = request(RuleSet::ck, {"gfx942", "gfx950"}, "3");
    std::vector<KernelFamily> order;
    std::vector<std::string> suffixes;
    enumerate(archs(), r, [&](const KernelConfig& config) {
        if (order.empty() || order.back() != config.signature.family)
            order.push_back(config.signature.family);
        if (config.signature.family == KernelFamily::fwd &&
            (suffixes.empty() || suffixes.back() != config.arch.view()))
            suffixes.push_back(config.arch.str());
    });
    using enum KernelFamily;
    EXPECT_THAT(order, ElementsAre(fwd, fwd_splitkv_combine, fwd_splitkv, fwd_appendkv, fwd_pagedkv,
                                   batch_prefill, bwd_dot_do_o, bwd_dq_dk_dv, bwd_convert_dq));
    EXPECT_THAT(suffixes, ElementsAre("gfx950", "gfx9")) << "longest group name first";
}

TEST(CkOptions, CustomFactoryPutsOneTileFirst) {
    Request r = request(RuleSet::ck, {"gfx950"});
    r.families = only({KernelFamily::fwd});
    r.optdim = {128};
    r.custom_factory = true;
    const auto with = names(archs(), r);
    r.custom_factory = false;
    r.targets = {"gfx942"};
    const auto without = names(archs(), r);
    EXPECT_THAT(with, Each(EndsWith("_gfx9.cpp"))) << "every target takes the gfx9 tables";
    // qr_async takes the tile (k0 64), qr does not: per type 2 (cap) + alibi = 3 of 4 points x 32, 2 + 1 entries.
    EXPECT_EQ(with.size(), without.size() + 2 * 3 * 32 * 3);
    EXPECT_THAT(with.front(), HasSubstr("_b64x128x64x128x64x128_"));
}

TEST(CkOptions, VocabularyDecidesTheMaskToken) {
    Request r = request(RuleSet::ck, {"gfx950"});
    r.families = only({KernelFamily::fwd});
    filter(r, ApiFamily::fwd) = "*_v3_*_logits_*_mc_*_nqscale_*";
    EXPECT_THAT(names(archs(), r), SizeIs(2))
        << "v3 spells causal masks even in simplified runs, in both modes";
    filter(r, ApiFamily::fwd) = "*_mg_*";
    EXPECT_THAT(names(archs(), r), testing::IsEmpty());
    r.masks = MaskVocabulary::generic;
    EXPECT_THAT(names(archs(), r), Not(testing::IsEmpty()));
    filter(r, ApiFamily::fwd) = "*_mask_*";
    EXPECT_THAT(names(archs(), r), testing::IsEmpty());
}

TEST(CkOptions, NamesAreUnique) {
    for (const MaskVocabulary masks : {MaskVocabulary::simplified, MaskVocabulary::generic}) {
        Request r = request(RuleSet::ck, {"gfx942", "gfx950", "gfx90a"}, "all");
        r.masks = masks;
        EXPECT_EQ(name_set(archs(), r).size(), names(archs(), r).size());
    }
}

TEST(Profiles, NumbersAreAliases) {
    for (const ProfileRow& row : profiles()) {
        EXPECT_EQ(parse_profile(to_string(row.id)).id, row.id);
        if (row.number >= 0) {
            EXPECT_EQ(parse_profile(std::to_string(row.number)), named_profile(row.id));
        }
    }
    EXPECT_EQ(parse_profile("150"), (Profile{ProfileId::unlisted, 150}));
    EXPECT_EQ(profile_name(parse_profile("150")), "150");
    for (const char* text : {"1000", "-1", "4x", "", "pytorch2"})
        EXPECT_THROW(parse_profile(text), InputError) << text;
}

TEST(Profiles, GroupsAreUnions) {
    for (const RuleSet rules : {RuleSet::ck, RuleSet::house})
        for (const ProfileRow& row : profiles()) {
            if (row.members.empty()) continue;
            std::set<std::string> united;
            for (const ProfileId member : row.members)
                united.merge(name_set(archs(), request(rules, {"gfx950"}, to_string(member))));
            EXPECT_EQ(name_set(archs(), request(rules, {"gfx950"}, to_string(row.id))), united)
                << to_string(row.id);
        }
}

TEST(Profiles, EmptyListsArePinned) {
    // Family bits without a kernel, per profile, rule set ck on gfx950; an empty list is a valid answer.
    const auto empty = [](std::string_view profile) {
        FamilySet seen = FamilySet::none();
        enumerate(archs(), request(RuleSet::ck, {"gfx950"}, profile),
                  [&](const KernelConfig& config) { seen.add(config.signature.family); });
        std::vector<std::string_view> absent;
        for (const auto& entry : EnumTable<KernelFamily>::names)
            if (!seen.has(entry.value)) absent.push_back(entry.name);
        return absent;
    };
    EXPECT_THAT(empty("ck_default"), ElementsAre());
    EXPECT_THAT(empty("pytorch"), ElementsAre("fwd_splitkv"));
    EXPECT_THAT(empty("aiter_batch"), ElementsAre("batch_prefill"));
    EXPECT_THAT(empty("transformer_engine"), ElementsAre("fwd_pagedkv", "fwd_splitkv", "batch_prefill"));
    EXPECT_THAT(empty("fp32"), ElementsAre("fwd_pagedkv", "fwd_splitkv", "fwd_splitkv_combine",
                                           "fwd_appendkv", "batch_prefill"));
}

TEST(Catalog, RefusesOptionsThatDoNothing) {
    Request r = request(RuleSet::house, {"gfx950"});
    r.custom_factory = true;
    EXPECT_THROW(list(archs(), r), InputError);
    r = request(RuleSet::house, {});
    EXPECT_THROW(list(archs(), r), InputError);
    r = request(RuleSet::house, {"gfx000"});
    EXPECT_THAT([&] { list(archs(), r); },
                testing::ThrowsMessage<InputError>(AllOf(HasSubstr("gfx000"), HasSubstr("gfx950"))));
}

} // namespace
} // namespace fmha::catalog::test
