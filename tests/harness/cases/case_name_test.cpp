#include "harness/cases/case_name.hpp"

#include "dispatcher/types/error.hpp"
#include "harness/cases/mask_text.hpp"

#include <gmock/gmock.h>

namespace fmha::harness {
namespace {

TEST(MaskText, FormsOfTheSpecification) {
    const std::vector<std::pair<std::string, MaskText>> forms{
        {"0", {}},
        {"1", {MaskType::top_left, -1, 0, 0}},
        {"t", {MaskType::top_left, -1, 0, 0}},
        {"2", {MaskType::bottom_right, -1, 0, 0}},
        {"b", {MaskType::bottom_right, -1, 0, 0}},
        {"t:128,30", {MaskType::top_left, 128, 30, 0}},
        {"b:-1,1,2", {MaskType::bottom_right, -1, 1, 2}},
        {"xt:5", {MaskType::top_left, 2, 2, 0}},
        {"xb:4", {MaskType::bottom_right, 2, 1, 0}},
        {"xb:0", {MaskType::bottom_right, -1, 0, 0}},
        {"g:5,9", {MaskType::window_generic, 4, 8, 0}},
    };
    for (const auto& [text, expected] : forms) {
        MaskText parsed;
        ASSERT_TRUE(parse_mask(text, parsed)) << text;
        EXPECT_EQ(parsed, expected) << text;
        MaskText again;
        ASSERT_TRUE(parse_mask(mask_text(parsed), again)) << text;
        EXPECT_EQ(again, expected) << text;
    }
    MaskText unused;
    for (const auto* text :
         {"", "3", "causal", "t:", "t:1", "t:1,2,3,4", "t:1,2,-1", "xt:", "xt:1,2", "g:1", "t:1,x", "b:1,2 "})
        EXPECT_FALSE(parse_mask(text, unused)) << text;
}

TEST(CaseName, ValuesKeepTheirCommas) {
    FwdCase concrete;
    apply_overrides("mask=t:128,30,4,seqlen_q=[0,1,65],dtype=bf16", "name", concrete);
    EXPECT_EQ(concrete.window_right, 30);
    EXPECT_EQ(concrete.sink_size, 4);
    EXPECT_THAT(concrete.seqlen_q, testing::ElementsAre(0, 1, 65));
    EXPECT_EQ(concrete.data_type, DataType::bf16);
}

} // namespace
} // namespace fmha::harness
