// Every way to get a name, a path, a flag or a shape matrix wrong ends in one sentence that names the place, the value and the allowed
// ones. `R` stands for the root of the cases in the expected sentences.

#include "harness/cases/case_file.hpp"
#include "harness/cases/load.hpp"
#include "tests/harness/cases/malformed.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>

namespace fmha::harness {
namespace {

using test::complaint;
using test::file;
using test::Malformed;
namespace fs = std::filesystem;

class MalformedOnDisk : public testing::Test {
  protected:
    void SetUp() override {
        root_ = fs::path(testing::TempDir()) / fmt::format("malformed_{}", ::getpid());
        fs::create_directories(root_ / "fwd");
        write("fwd/good.json", file("\"each\": {\"hdim\": [64, 128]}"));
    }
    void TearDown() override { fs::remove_all(root_); }

    void write(const std::string& path, const std::string& content) const {
        std::ofstream(root_ / path) << content;
    }
    std::string loading(const std::string& argument, Tier tier = Tier::smoke) const {
        return without_root(complaint([&] { load_cases({argument}, {.root = root_, .tier = tier}); }));
    }
    std::string without_root(const std::string& text) const {
        const auto at = text.find(root_.string());
        if (at == std::string::npos) return text;
        return fmt::format("{}R{}", text.substr(0, at),
                           without_root(text.substr(at + root_.string().size())));
    }

    fs::path root_;
};

TEST_F(MalformedOnDisk, NamesAndPaths) {
    write("fwd/full_only.json", R"({"about": "a", "family": "fwd", "tier": "full", "fill": "normal"})");
    fs::create_directories(root_ / "empty");
    fs::create_directories(root_ / "fwd/folder.json");
    write("fwd/latin_\xE9.json", file("\"each\": {\"hdim\": [64, 128]}"));
    static constexpr Malformed table[] = {
        {"fwd/good", "accepted"},
        {"fwd/good[hdim=64]@1", "accepted"},
        {"fwd/good[hdim=64]@7", "accepted"},
        {"fwd/bad", "fwd/bad: no case file, folder or case of that name (looked in R and here)"},
        {"fwd/bad[hdim=64]@1", "fwd/bad: no case file, folder or case of that name (looked in R and here)"},
        {"fwd/good[hdim=64", "fwd/good[hdim=64: '[' without a closing ']'"},
        {"fwd/good[hdim=64]@x",
         "fwd/good[hdim=64]@x: the seed after '@' is not an integer from 0 to 2^64 - 1"},
        {"fwd/good[hdim=64]@-1",
         "fwd/good[hdim=64]@-1: the seed after '@' is not an integer from 0 to 2^64 - 1"},
        {"fwd/good[hdim]@1", "fwd/good[hdim]@1: hdim has no value"},
        {"fwd/good[hdm=64]@1", "fwd/good[hdm=64]@1: \"hdm\" is not a field of a case; did you mean hdim?"},
        {"fwd/good[hdim=x]@1", "fwd/good[hdim=x]@1: hdim: \"x\" is not allowed; expected a head dimension or "
                               "\"qk:v\", as in \"192:128\""},
        {"fwd/good[hdim=64,hdim_q=32]@1", "fwd/good[hdim=64,hdim_q=32]@1: hdim_q is set twice"},
        {"fwd/good[hdim=64,hdim=32]@1", "fwd/good[hdim=64,hdim=32]@1: hdim_q is set twice"},
        {"fwd/good[batch=3,seqlen_q=[1,2]]@1",
         "fwd/good[hdim=128,batch=3,seqlen_q=[1,2]]@1: seqlen_q=[1,2]: has 2 lengths for batch 3"},
        {"fwd/full_only",
         "R/fwd/full_only.json: has no case up to the tier asked for; its lowest tier is above it"},
        {"empty", "R/empty: the folder has no case file"},
        {"fwd[hdim=64]@1", "fwd[hdim=64]@1: R/fwd is not a case file"},
        {"fwd/latin_\xE9", "R/fwd/latin_\xE9.json: is not UTF-8; names of cases are"},
        {"fwd/latin_\xE9[hdim=64]@1", "R/fwd/latin_\xE9.json: is not UTF-8; names of cases are"},
    };
    for (const auto& [argument, sentence] : table)
        EXPECT_EQ(loading(std::string(argument)), sentence) << argument;

    EXPECT_EQ(complaint([&] {
                  load_cases({"fwd/good", "fwd/good"}, {.root = root_});
              }),
              "the case fwd/good[hdim=64]@1 appears twice");
    EXPECT_EQ(complaint([] { load_cases({}, {.root = "/no/such/folder"}); }),
              "/no/such/folder: the folder of case files does not exist");
    EXPECT_EQ(complaint([&] { CaseFile::read(root_ / "none.json", "none"); }),
              root_.string() + "/none.json: No such file or directory");
    EXPECT_EQ(complaint([&] { CaseFile::read(root_ / "fwd", "fwd"); }),
              root_.string() + "/fwd: is a folder, not a file");
    for (const auto* text :
         {"", "3", "0/4", "5/4", "1/0", "-1/4", "1/4x", "a/b", "1/1000001", "2/18446744073709551615"})
        EXPECT_EQ(
            complaint([&] { parse_shard(text); }),
            fmt::format("--shard: \"{}\" is not allowed; expected i/n with 1 <= i <= n <= 1000000", text));
}

TEST_F(MalformedOnDisk, ShapeMatrices) {
    const std::string head = "forward_tests:\n  smoke:\n    - name: T\n";
    static constexpr Malformed table[] = {
        {"", "accepted"},
        {"      batch: [1]\n      layout: [BHSD]\n", "accepted"},
        {"- 1", "R/m.yaml: expected a map with forward_tests"},
        {"a: [",
         "R/m.yaml: not valid YAML: yaml-cpp: error at line 1, column 1: end of sequence flow not found"},
        {"test_categories: {}", "R/m.yaml: forward_tests is missing or not a map of tiers"},
        {"forward_test: {}",
         "R/m.yaml: forward_test is not a key of a shape matrix; did you mean forward_tests?"},
        {"forward_tests:\n  smok: []\n",
         "R/m.yaml: forward_tests: smok is not a key of a shape matrix; did you mean smoke?"},
        {"forward_tests:\n  smoke: 3\n", "R/m.yaml: forward_tests.smoke: expected a list of tests"},
        {"forward_tests:\n  smoke:\n    - batch: [1]\n", "R/m.yaml: line 3: a test is a map with a name"},
        {"forward_tests:\n  smoke:\n    - name: [T]\n", "R/m.yaml: line 3: a test is a map with a name"},
        {"      [batch]: [1]\n", "R/m.yaml: T: a key must be a single text"},
        {"      description: {a: b}\n", "R/m.yaml: T: description must be a single text"},
        {"      bach: [1]\n", "R/m.yaml: T: bach is not a key of a shape matrix; did you mean batch?"},
        {"      batch: 1\n", "R/m.yaml: T: batch: expected a list of values, as in [1]"},
        {"      batch: []\n", "R/m.yaml: T: batch: expected a list of values, as in [1]"},
        {"      batch: [x]\n", "R/m.yaml: T: batch: x is not allowed: expected a whole number"},
        {"      batch: [[1]]\n",
         "R/m.yaml: T: batch: a nested value is not allowed: expected a whole number"},
        {"      dtype: [fp17]\n", "R/m.yaml: T: dtype: fp17 is not allowed: expected fp32, fp16, "
                                  "bf16, fp8, bf8, fp8bf16, fp8fp32, mxfp8 or mxfp4"},
        {"      mask: [causal]\n",
         "R/m.yaml: T: mask: causal is not allowed: expected no_mask, top_left or bottom_right"},
        {"      bias: [yes]\n", "R/m.yaml: T: bias: yes is not allowed: expected none, elementwise or alibi"},
        {"      lse: [2]\n", "R/m.yaml: T: lse: 2 is not allowed: expected true or false"},
        {"      dropout: [x]\n", "R/m.yaml: T: dropout: x is not allowed: expected a finite number"},
        {"      zzz: [1]\n",
         "R/m.yaml: T: zzz is not a key of a shape matrix; allowed: name, description, layout, has_dbias, "
         "is_deterministic, "
         "batch, seqlen_q, seqlen_k, nhead_q, nhead_k, hdim_q, hdim_v, dtype, mask, bias, dropout, lse"},
        {"      seqlen_q: [-4]\n", "R/m.yaml: T: seqlen_q=-4: a length is 0 or more"},
    };
    for (const auto& [content, sentence] : table) {
        // An indented content is spliced behind the test's name.
        write("m.yaml",
              content.empty() || content[0] == ' ' ? head + std::string(content) : std::string(content));
        EXPECT_EQ(loading("m.yaml"), sentence) << content;
    }
    // Axes multiply: these lines ask for 10^12 shapes.
    std::string long_list = "[1";
    for (int n = 2; n <= 1000; ++n) long_list += fmt::format(",{}", n);
    std::string axes;
    for (const char* axis : {"batch", "seqlen_q", "seqlen_k", "nhead_q"})
        axes += fmt::format("      {}: {}]\n", axis, long_list);
    write("m.yaml", head + axes);
    EXPECT_EQ(loading("m.yaml"), "R/m.yaml: T: more than 200000 shapes");
    write("m.yaml", head);
    const auto matrix = (root_ / "m.yaml").generic_string();
    EXPECT_EQ(loading(matrix + "/U@1"), "R/m.yaml: forward_tests has no test called U");
    EXPECT_EQ(loading(matrix + "/T[bach=2]@1"),
              "R/m.yaml/T: \"bach\" is not a field of a case; did you mean batch?");
}

} // namespace
} // namespace fmha::harness
