#include "parity/set_difference.hpp"

#include "dispatcher/types/error.hpp"
#include "parity/digest.hpp"
#include "parity/listing.hpp"
#include "parity/pattern.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fmha::parity {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> some_names() {
    std::vector<std::string> names;
    for (const char* head : {"fmha_fwd_d64_fp16_b64x64_w16x16", "fmha_fwd_d128_fp16_b128x64_w32x32"})
        for (const char* mask : {"mask", "nmask"})
            for (const char* lse : {"lse", "nlse"})
                names.push_back(std::string(head) + "_" + mask + "_" + lse);
    return names;
}

TEST(NameDigest, IsShaOfNamesJoinedByLineFeeds) {
    NameDigest digest;
    EXPECT_EQ(digest.finish(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    digest.add("a");
    digest.add("b");
    // printf 'a\nb' | sha256sum
    EXPECT_EQ(digest.finish(), "7e18f737311b2dc3b2f269dd78396b0351f14fb66efa879f768cb23181883c78");
}

TEST(Pattern, IsAProductWhereTheSetIsOne) {
    EXPECT_EQ(write_pattern({"_a_x", "_a_y", "_b_x", "_b_y"}), "(_a|_b)(_x|_y)");
    EXPECT_EQ(write_pattern({"", "_lse", "_lse_drop", "_drop"}), "[_lse][_drop]");
    EXPECT_EQ(write_pattern({"_a_x", "_b_x", "_b_y"}), "(_a_x|_b(_x|_y))");
    EXPECT_EQ(write_pattern({""}), "");
}

TEST(Pattern, ReadsBackAnySet) {
    // Every subset of a small product, so that no shape of set is left out.
    const std::vector<std::string> all{"", "_a", "_b", "_a_x", "_a_y", "_b_x", "_b_y", "_a_x_p", "_b_x_p"};
    for (unsigned bits = 1; bits < 1U << all.size(); ++bits) {
        std::vector<std::string> set;
        for (std::size_t i = 0; i < all.size(); ++i)
            if ((bits >> i & 1U) != 0) set.push_back(all[i]);
        const auto pattern = write_pattern(set);
        auto back = expand_pattern(pattern);
        std::sort(back.begin(), back.end());
        std::sort(set.begin(), set.end());
        ASSERT_EQ(back, set) << pattern;
    }
    EXPECT_THROW(expand_pattern("(_a|_b"), InputError);
    EXPECT_THROW(expand_pattern("_a]"), InputError);
}

TEST(Listing, ReadsBackWhatItWrites) {
    auto names = some_names();
    names.push_back("fmha_bwd_dot_do_o_d32");
    const auto text = write_listing(names);
    EXPECT_THAT(text, HasSubstr("B (_mask|_nmask)(_lse|_nlse)\n"));
    EXPECT_THAT(text, HasSubstr("fmha_fwd_d128_fp16_b128x64_w32x32 B\nfmha_fwd_d64_fp16_b64x64_w16x16 B\n"));
    std::sort(names.begin(), names.end());
    EXPECT_EQ(parse_listing(text, "x.txt"), names);
}

TEST(Listing, RefusesWhatIsNoListing) {
    EXPECT_THROW(parse_listing("", "x.txt"), InputError);
    EXPECT_THROW(parse_listing("\nfmha_fwd A\n", "x.txt"), InputError);
    EXPECT_THROW(parse_listing("surprise\n", "x.txt"), InputError);
}

TEST(SetDifference, IsEmptyForEqualSetsInAnyOrder) {
    auto reversed = some_names();
    std::reverse(reversed.begin(), reversed.end());
    const auto found = difference(some_names(), reversed);
    EXPECT_TRUE(found.empty());
    EXPECT_EQ(found.expected, 8U);
}

TEST(SetDifference, NamesTheTileThatWasDropped) {
    const auto all = some_names();
    const auto found = difference(all, {all.begin() + 4, all.end()});
    ASSERT_EQ(found.lost.size(), 1U);
    EXPECT_EQ(found.lost[0].beginning, "fmha_fwd_d64");
    EXPECT_EQ(found.lost_count(), 4U);
    EXPECT_TRUE(found.gained.empty());
}

TEST(SetDifference, NamesTheFeatureThatWasDropped) {
    auto after = some_names();
    std::erase_if(after,
                  [](const std::string& name) { return name.find("_nmask_lse") != std::string::npos; });
    const auto found = difference(some_names(), after);
    ASSERT_EQ(found.lost.size(), 2U);
    EXPECT_EQ(found.lost[0].beginning, "fmha_fwd_d128_fp16_b128x64_w32x32_nmask_lse");
}

TEST(SetDifference, TellsARenameFromALossAndAGain) {
    auto after = some_names();
    after[0] = "fmha_fwd_d64_fp16_b64x64_w16x16_anymask_lse";
    after[3] += "_v2";
    after.push_back("fmha_fwd_d512_fp8_b1x1_mask_lse");
    after.erase(after.begin() + 6);
    const auto found = difference(some_names(), after);
    EXPECT_EQ(found.renamed_count(), 2U);
    EXPECT_EQ(found.lost_count(), 1U);
    EXPECT_EQ(found.gained_count(), 1U);
    ASSERT_EQ(found.renamed.size(), 2U);
    EXPECT_EQ(found.renamed[0].from, "");
    EXPECT_EQ(found.renamed[0].to, "v2");
    EXPECT_EQ(found.renamed[1].from, "mask");
    EXPECT_EQ(found.renamed[1].to, "anymask");
}

TEST(SetDifference, ReportsNamesThatStandTwice) {
    auto twice = some_names();
    twice.push_back(twice.front());
    EXPECT_THAT(difference(some_names(), twice).duplicates, ElementsAre(some_names().front()));
}

TEST(SetDifference, AsksForCausesGroupByGroupAndMergesEqualOnes) {
    auto after = some_names();
    std::erase_if(after,
                  [](const std::string& name) { return name.find("_nmask_lse") != std::string::npos; });
    auto found = difference(some_names(), after);
    explain(
        found, [](const std::string&) { return "R9 takes it away"; }, [](const std::string&) { return ""; });
    ASSERT_EQ(found.lost.size(), 1U);
    EXPECT_EQ(found.lost[0].cause, "R9 takes it away");
    EXPECT_EQ(found.lost[0].names.size(), 2U);
}

} // namespace
} // namespace fmha::parity
