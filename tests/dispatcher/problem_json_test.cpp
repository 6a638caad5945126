// Problem files: every form is read, and every mistake is one sentence that says where it stands.

#include "dispatcher/problem_json.hpp"
#include "dispatcher/types/error.hpp"

#include <gmock/gmock.h>

namespace fmha {
namespace {

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
        "f: seqstart_q: expected an array of offsets from 0 on that do not decrease, "
        "one more than entries, got ";
    EXPECT_EQ(message(backward(R"("seqstart_q": [0, 5, 4, 75])")), expected + "[0,5,4,75]");
    EXPECT_EQ(message(backward(R"("seqstart_q": [1, 5, 6, 75])")), expected + "[1,5,6,75]");
    EXPECT_EQ(message(backward(R"("seqstart_q": [0, 1.5, 6, 75])")), expected + "[0,1.5,6,75]");
    EXPECT_EQ(message(backward(R"("seqstart_q": 7)")), expected + "7");
    EXPECT_EQ(message(backward(R"("seqstart_q": [0, 5])")), "f: seqstart_q: has 2 offsets, batch 3 needs 4");
    EXPECT_EQ(message(with("\"batch\": 2", "\"batch\": 2, \"seqstart_k\": [0, 1, 2]")),
              "f: seqstart_k: a batch that is not packed has no offsets");
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
                      HasSubstr("batch, nhead_q")));
    EXPECT_THAT(message(with("128,", "\"128\",")), HasSubstr("f.signature.hdim_q: expected an integer"));
}

} // namespace
} // namespace fmha
