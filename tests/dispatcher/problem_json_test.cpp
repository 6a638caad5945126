// Problem files: every form is read, and every mistake is one sentence that says where it stands.

#include "dispatcher/problem_json.hpp"
#include "dispatcher/types/error.hpp"

#include <gmock/gmock.h>

namespace fmha {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

const std::string good = R"({"signature": {"data_type": "bf16", "hdim_q": 128, "hdim_v": 128},
 "batch": 2, "nhead_q": 8, "nhead_k": 2, "seqlen_q": 64, "seqlen_k": 64})";

std::string on_one_line(std::string text) {
    std::erase(text, '\n');
    return text;
}

std::string message(const std::string& text) {
    try {
        problems_from_text(text, "f");
    } catch (const Error& error) {
        return error.what();
    }
    return "accepted";
}

std::string with(const std::string& from, const std::string& to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
}

TEST(ProblemFile, IsOneAnArrayOrOneALine) {
    EXPECT_EQ(problems_from_text(good, "f").size(), 1U);
    EXPECT_EQ(problems_from_text("[" + good + "," + good + "]", "f").size(), 2U);
    const std::string line = on_one_line(good);
    EXPECT_EQ(problems_from_text(line, "f").size(), 1U);
    EXPECT_EQ(problems_from_text(line + "\n\n" + line + "\n", "f").size(), 2U);
}

TEST(ProblemFile, ARefusalSaysWhichProblem) {
    const std::string bad = with("\"batch\": 2", "\"batch\": 0");
    EXPECT_EQ(message(bad), "H-1: batch is 0; it must be positive (f)");
    EXPECT_THAT(message("[" + good + "," + bad + "]"), HasSubstr("(f[1])"));
    EXPECT_THAT(message(on_one_line(good) + "\n" + on_one_line(bad)), HasSubstr("(f:2)"));
    try {
        problems_from_text(bad, "f");
        FAIL();
    } catch (const ProblemError& error) {
        EXPECT_EQ(error.rule(), "H-1");
        EXPECT_EQ(error.field(), "batch");
    }
}

TEST(ProblemFile, MayStateTheOffsetsOfAPackedBatch) {
    const auto backward = [](const std::string& offsets) {
        return R"({"api_family": "bwd", "signature": {"data_type": "bf16", "mode": "group", "hdim_q": 128, "hdim_v": 128},
 "batch": 3, "nhead_q": 8, "nhead_k": 2, "presence": {"seqstart_q": true, "seqstart_k": true}, )" +
               offsets + "}";
    };
    const auto stated =
        problems_from_text(backward(R"("seqstart_q": [0, 5, 5, 75], "seqstart_k": [0, 200, 264, 300])"), "f")
            .front();
    EXPECT_THAT(stated.lengths.physical_q, testing::ElementsAre(5, 0, 70));
    EXPECT_THAT(stated.lengths.physical_k, testing::ElementsAre(200, 64, 36));
    EXPECT_EQ(stated.problem.max_seqlen_q, 70);
    EXPECT_EQ(stated.problem.max_seqlen_k, 200);
    EXPECT_EQ(problems_from_text(backward(R"("max_seqlen_q": 99, "seqstart_q": [0, 5, 5, 75])"), "f")
                  .front()
                  .problem.max_seqlen_q,
              99);
    const std::string expected =
        "f: seqstart_q: expected an array of offsets from 0 on that do not decrease, below 2^31, "
        "one more than entries, got ";
    EXPECT_EQ(message(backward(R"("seqstart_q": [0, 5, 5, 4294967301])")), expected + "[0,5,5,4294967301]");
    EXPECT_EQ(message(backward(R"("seqstart_q": [0, 5, 4, 75])")), expected + "[0,5,4,75]");
    EXPECT_EQ(message(backward(R"("seqstart_q": [1, 5, 6, 75])")), expected + "[1,5,6,75]");
    EXPECT_EQ(message(backward(R"("seqstart_q": [0, 1.5, 6, 75])")), expected + "[0,1.5,6,75]");
    EXPECT_EQ(message(backward(R"("seqstart_q": 7)")), expected + "7");
    EXPECT_EQ(message(backward(R"("seqstart_q": [0, 5])")), "f: seqstart_q: has 2 offsets, batch 3 needs 4");
    EXPECT_EQ(message(with("\"batch\": 2", "\"batch\": 2, \"seqstart_k\": [0, 1, 2]")),
              "f: seqstart_k: a batch that is not packed has no offsets");
}

TEST(ProblemFile, BooleansHaveTheWordsOfUpstreamsFiles) {
    const auto lse = [](const std::string& value) {
        return with("128},", "128, \"has_lse\": " + value + "},");
    };
    for (const char* const yes : {"true", "\"t\"", "\"yes\"", "\"1\""})
        EXPECT_TRUE(problems_from_text(lse(yes), "f").front().problem.signature.has_lse) << yes;
    for (const char* const no : {"false", "\"f\"", "\"no\"", "\"0\""})
        EXPECT_FALSE(problems_from_text(lse(no), "f").front().problem.signature.has_lse) << no;
    for (const char* const neither : {"1", "\"T\"", "\"true\"", "\"\"", "null"})
        EXPECT_EQ(message(lse(neither)),
                  std::string("f.signature.has_lse: expected true or false, or one of \"t\", \"yes\", \"1\", "
                              "\"f\", \"no\", \"0\", got ") +
                      neither);
}

/// They stay accepted, as upstream's scripts state them for every family, but not in silence.
TEST(ProblemFile, FieldsWithoutEffectAreTold) {
    const auto unused = [](const std::string& family, const std::string& signature,
                           const std::string& fields) {
        return problems_from_text(
                   R"({"api_family": ")" + family + R"(", "signature": {"hdim_q": 128, "hdim_v": 128)" +
                       signature +
                       R"(}, "batch": 2, "nhead_q": 8, "nhead_k": 2, "seqlen_q": 64, "seqlen_k": 64)" +
                       fields + "}",
                   "f")
            .front()
            .unused;
    };
    using testing::ElementsAre;
    using testing::IsEmpty;
    EXPECT_THAT(unused("fwd", "", ""), IsEmpty());
    EXPECT_THAT(unused("fwd", R"(, "page_size": 1)", R"(, "num_splits": 1, "window_left": -1)"), IsEmpty())
        << "these are the defaults";
    EXPECT_THAT(unused("fwd", R"(, "page_size": 64, "kv_layout": "linear")",
                       R"(, "num_splits": 4, "rotary_dim": 16, "window_left": 128)"),
                ElementsAre("signature.kv_layout is linear, which fwd does not use",
                            "signature.page_size is 64, which fwd does not use",
                            "window_left is 128, which fwd without a mask does not use",
                            "num_splits is 4, which fwd does not use",
                            "rotary_dim is 16, which fwd does not use"));
    EXPECT_THAT(unused("fwd", "", R"(, "window_left": 128, "mask_type": "bottom_right")"), IsEmpty());
    EXPECT_THAT(
        unused("fwd", R"(, "mask": "causal")", ""),
        ElementsAre(
            "signature.mask is causal, which fwd, whose mask class follows from mask_type, does not use"));
    EXPECT_THAT(unused("fwd", R"(, "mask": "causal")", R"(, "mask_type": "top_left")"), IsEmpty());
    EXPECT_THAT(unused("fwd_splitkv", R"(, "page_size": 256)", R"(, "num_splits": 4)"),
                ElementsAre("signature.page_size is 256, which fwd_splitkv without pages does not use"));
    EXPECT_THAT(unused("fwd_splitkv", R"(, "page_size": 256)",
                       R"(, "presence": {"block_table": true, "seqlen_k": true})"),
                IsEmpty());
    EXPECT_THAT(unused("fwd_appendkv", R"(, "has_lse": true)",
                       R"(, "rotary_dim": 16, "mask_type": "top_left", "window_right": 0,
                            "presence": {"seqlen_k": true})"),
                ElementsAre("signature.has_lse is true, which fwd_appendkv does not use",
                            "window_right is 0, which fwd_appendkv does not use",
                            "rotary_dim is 16, which fwd_appendkv without RoPE does not use"));
    EXPECT_THAT(unused("bwd", R"(, "has_lse": true)", ""),
                ElementsAre("signature.has_lse is true, which bwd does not use"));
}

TEST(ProblemFile, MistakesAreOneSentence) {
    EXPECT_EQ(message(""), "f: holds no problem");
    EXPECT_EQ(message("[]"), "f: holds no problem");
    EXPECT_THAT(message(with("\"batch\": 2", "\"batch\": ")),
                AllOf(StartsWith("f: not valid JSON"), HasSubstr("line 2")));
    EXPECT_THAT(message(on_one_line(good) + "\n{\n"), StartsWith("f:2: not valid JSON"));
    EXPECT_THAT(message(with("\"batch\": 2", "\"batch\": 1e400")), StartsWith("f: not valid JSON"));
    EXPECT_THAT(message(with("\"batch\": 2", "\"batch\": 2, \"batch\": 3")),
                HasSubstr("key \"batch\" appears twice"));
    EXPECT_THAT(message(with("\"batch\"", "\"batches\"")),
                AllOf(HasSubstr("f: unknown key \"batches\"; allowed: api_family, arch"),
                      HasSubstr("batch, nhead_q"), EndsWith("presence, seqstart_q, seqstart_k")));
    EXPECT_THAT(message(with("128,", "\"128\",")), HasSubstr("f.signature.hdim_q: expected an integer"));
}

} // namespace
} // namespace fmha
