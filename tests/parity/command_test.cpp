#include "dispatcher/system/process.hpp"
#include "tests/support/command_line.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <sstream>

namespace fmha::cli {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::Gt;
using testing::HasSubstr;
using testing::Lt;
using testing::Not;
using testing::StartsWith;

TEST(Enumerate, CountsByDefault) {
    const auto ran = test::run({"enumerate", "--arch", "gfx950", "--rules", "ck"});
    EXPECT_EQ(ran.code, all_well) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("\n22929 kernels\n"));
    // Family, four data types with fwd kernels, total.
    EXPECT_THAT(ran.out, testing::ContainsRegex("fwd  +3520 +3520 +0 +304 +72 +24 +24 +7464\n"));
}

TEST(Enumerate, HasTheListThatDocumentsQuoteAsDefault) {
    EXPECT_THAT(test::run({"enumerate"}).out, HasSubstr("\n33541 kernels\n"));
}

TEST(Enumerate, TakesNumbersForProfiles) {
    const auto by_number = test::run({"enumerate", "--rules", "ck", "--profile", "4"});
    EXPECT_THAT(by_number.out, HasSubstr("\n6806 kernels\n"));
    EXPECT_EQ(test::run({"enumerate", "--rules", "ck", "--profile", "pytorch"}).out, by_number.out);
}

TEST(Enumerate, MergesTargetsOfOneRunAsUpstreamDoes) {
    EXPECT_THAT(test::run({"enumerate", "--rules", "ck", "--arch", "gfx942,gfx950", "--family", "fwd"}).out,
                HasSubstr("\n14672 kernels\n"));
    EXPECT_THAT(test::run({"enumerate", "--rules", "ck", "--arch", "gfx942", "--arch", "gfx1100", "--family",
                           "batch_prefill"})
                    .out,
                HasSubstr("0 kernels\n"));
}

TEST(Enumerate, RestrictsHeadDimensionsMasksAndFamilies) {
    EXPECT_THAT(test::run({"enumerate", "--rules", "ck", "--optdim", "32,64"}).out,
                HasSubstr("\n5863 kernels\n"));
    EXPECT_THAT(test::run({"enumerate", "--rules", "ck", "--masks", "generic"}).out,
                HasSubstr("\n34889 kernels\n"));
    EXPECT_THAT(test::run({"enumerate", "--rules", "ck", "--family", "splitkv"}).out,
                HasSubstr("\n2106 kernels\n"));
    EXPECT_THAT(test::run({"enumerate", "--rules", "ck", "--optdim", "160"}).out, HasSubstr("0 kernels\n"));
    EXPECT_EQ(test::run({"enumerate", "--rules", "ck", "--optdim", "160"}).code, all_well);
}

TEST(Enumerate, FiltersAsWrittenUpstream) {
    const auto ran = test::run({"enumerate", "--rules", "ck", "--names", "--where",
                                "c.hdim_q == 256 and c.pipeline == 'qr_pagedkv' and not c.logits"});
    EXPECT_EQ(ran.code, all_well) << ran.err;
    EXPECT_THAT(ran.out, StartsWith("fmha_fwd_pagedkv_d256_fp8_"));
    EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '\n'), 18);
}

TEST(Enumerate, FiltersByFile) {
    const system::TemporaryDirectory folder;
    const auto file = (folder.path() / "filter.py").string();
    std::ofstream(file) << "# only small tiles\nc.tile_m0 <= 16\n";
    const auto ran = test::run({"enumerate", "--rules", "ck", "--family", "fwd", "--where-file", file});
    EXPECT_EQ(ran.code, all_well) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("\n64 kernels\n"));
    const auto both = test::run({"enumerate", "--rules", "ck", "--family", "fwd", "--where-file", file,
                                 "--where", "c.tile_m0 > 16 or c.data_type == 'fp16'"});
    EXPECT_EQ(both.code, all_well) << both.err;
    EXPECT_THAT(both.out, HasSubstr("\n32 kernels\n"));
    std::ofstream(file) << "hdim_q = 128 AND tile_m0 <= 16\n"; // as SQL has it
    EXPECT_THAT(test::run({"enumerate", "--rules", "ck", "--family", "fwd", "--where-file", file}).out,
                HasSubstr("kept "));
    std::ofstream(file) << "hdim = 64\n";
    const auto wrong = test::run({"enumerate", "--rules", "ck", "--where-file", file});
    EXPECT_EQ(wrong.code, bad_input);
    EXPECT_THAT(wrong.err, HasSubstr(file + ": filter expression \"hdim = 64\": character 1: "));
    EXPECT_THAT(wrong.err, HasSubstr("; a Python file defines filter_config(c)"));
}

TEST(Enumerate, TellsWhatIsComputedWhere) {
    const auto cells = nlohmann::json::parse(
        test::run({"enumerate", "--support", "--arch", "gfx942,gfx1100", "--format", "json"}).out);
    ASSERT_EQ(cells.size(), 2U * 9U * 9U);
    const auto cell = [&](const char* family, const char* arch, const char* type) {
        for (const auto& one : cells)
            if (one["family"] == family && one["arch"] == arch && one["data_type"] == type) return one;
        ADD_FAILURE() << family << " " << arch << " " << type;
        return nlohmann::json();
    };
    const auto fp16 = cell("fwd", "gfx942", "fp16");
    EXPECT_EQ(fp16["kernels"],
              nlohmann::json::parse(
                  test::run({"enumerate", "--rules", "house", "--arch", "gfx942", "--where",
                             "c.data_type == 'fp16'", "--family", "fwd", "--count", "--format", "json"})
                      .out)["total"]);
    EXPECT_EQ(fp16["host"], fp16["kernels"]);
    EXPECT_GT(fp16["gpu"], 0);
    EXPECT_EQ(cell("fwd", "gfx1100", "fp8fp32")["kernels"], 0) << "no 8-bit matrix instructions";
    const auto backward = cell("bwd_dq_dk_dv", "gfx942", "bf16");
    EXPECT_GT(backward["kernels"], 0);
    EXPECT_EQ(backward["host"], backward["kernels"]);
    EXPECT_GT(backward["gpu"], 0);

    const auto table = test::run({"enumerate", "--support", "--family", "fwd", "--arch", "gfx1100"});
    EXPECT_EQ(table.code, all_well);
    EXPECT_THAT(table.out, StartsWith("fwd "));
    EXPECT_THAT(table.out, HasSubstr("\ngfx1100 "));
}

TEST(Enumerate, TablesFitATerminalOfEightyColumns) {
    for (const char* table : {"--count", "--support"}) {
        const auto ran = test::run({"enumerate", "--rules", "house", "--arch", "gfx950", table});
        ASSERT_EQ(ran.code, all_well) << ran.err;
        std::istringstream lines(ran.out);
        for (std::string line; std::getline(lines, line);) {
            EXPECT_LE(line.size(), 80U) << line;
            EXPECT_THAT(line, Not(EndsWith(" ")));
        }
    }
}

TEST(Enumerate, FiltersByGlob) {
    const auto ran = test::run(
        {"enumerate", "--rules", "ck", "--family", "fwd_pagedkv", "--names", "--filter", "*_d256_*_sink*"});
    EXPECT_EQ(ran.out, "");
    EXPECT_THAT(test::run({"enumerate", "--rules", "ck", "--family", "fwd", "--filter", "fwd=*_mxfp4_*"}).out,
                HasSubstr("\n24 kernels\n"));
    for (const std::string list : {"fwd=*_mxfp4_*,", ",*", "*,,*"})
        EXPECT_EQ(test::run({"enumerate", "--rules", "ck", "--family", "fwd", "--filter", list}).err,
                  "fmha enumerate: --filter: \"" + list + "\" has no value on one side of a comma\n");
}

TEST(Enumerate, WritesJson) {
    const auto counts =
        nlohmann::json::parse(test::run({"enumerate", "--rules", "ck", "--count", "--format", "json"}).out);
    EXPECT_EQ(counts.at("total"), 22929);
    const auto names = nlohmann::json::parse(
        test::run({"enumerate", "--rules", "ck", "--family", "fwd_appendkv", "--names", "--format", "json"})
            .out);
    EXPECT_EQ(names.size(), 99U);
    const auto records = nlohmann::json::parse(
        test::run({"enumerate", "--rules", "ck", "--family", "fwd_appendkv", "--format", "json"}).out);
    EXPECT_EQ(records.at(0).at("name"), names.at(0));
    EXPECT_EQ(records.at(0).at("signature").at("family"), "fwd_appendkv");
}

TEST(Enumerate, SaysWhyANameIsListedOrNot) {
    const std::string name = "fmha_fwd_splitkv_combine_d32_fp16_batch_b32_unused_psdv_lse_nsquant_gfx9";
    const auto listed = test::run({"enumerate", "--rules", "ck", "--why", name});
    EXPECT_EQ(listed.code, all_well);
    EXPECT_THAT(listed.out, HasSubstr("listed"));
    EXPECT_THAT(listed.out, HasSubstr("tables/ck/gfx9.json#/families/fwd_splitkv_combine/tiles/0"));
    const auto removed = test::run({"enumerate", "--rules", "ck", "--profile", "aiter_group", "--why", name});
    EXPECT_EQ(removed.code, all_well);
    EXPECT_THAT(removed.out, HasSubstr("not listed"));
    EXPECT_THAT(removed.out, HasSubstr("removed by"));
    EXPECT_EQ(test::run({"enumerate", "--rules", "ck", "--why", "fmha_fwd_d7_int3"}).code, check_failed);
}

TEST(Enumerate, ListsRulesProfilesAndColumns) {
    EXPECT_THAT(test::run({"enumerate", "--rules", "ck", "--show-rules"}).out, HasSubstr("R4"));
    EXPECT_THAT(test::run({"enumerate", "--show-profiles"}).out, HasSubstr("transformer_engine"));
    EXPECT_THAT(test::run({"enumerate", "--show-columns"}).out, HasSubstr("\nhdim_q\n"));
}

TEST(Enumerate, TakesTheFirstKernelsOfEachApi) {
    const auto counts = [](const char* variant) {
        const auto ran = test::run({"enumerate", "--variant", variant, "--max-kernels", "5", "--names"});
        int main = 0;
        int others = 0;
        std::istringstream lines(ran.out);
        for (std::string name; std::getline(lines, name);) {
            const bool other = name.find("_combine_") != std::string::npos ||
                               name.find("_dot_do_o_") != std::string::npos ||
                               name.find("_convert_dq_") != std::string::npos;
            ++(other ? others : main);
        }
        return std::pair(main, others);
    };
    EXPECT_EQ(counts("fwd"), std::pair(5, 0));
    EXPECT_EQ(counts("fwd_splitkv_combine"), std::pair(0, 5));
    // Kernels of the other stages do not count; those of other head dimensions and types are left out.
    for (const char* variant : {"splitkv", "bwd"}) {
        const auto [main, others] = counts(variant);
        EXPECT_EQ(main, 5) << variant;
        EXPECT_THAT(others, AllOf(Gt(0), Lt(20))) << variant;
    }
    const auto by_name = test::run({"enumerate", "--profile", "pytorch"});
    EXPECT_EQ(by_name.code, 0) << by_name.err;
    EXPECT_THAT(by_name.out, HasSubstr("\nfwd_pagedkv"));
    EXPECT_EQ(test::run({"enumerate", "--variant", "all", "--receipt", "4"}).out, by_name.out);
}

TEST(Enumerate, SweepsHouseWhereUpstreamHasNoList) {
    const std::string sweep = FMHA_CASES_DIR "/sweeps/fwd_ci.json";
    const auto hopper = test::run({"enumerate", sweep, "--arch", "sm_90", "--count-only"});
    EXPECT_EQ(hopper.code, all_well);
    EXPECT_EQ(hopper.err, "there is no list claim for sm_90; " + sweep + " restricts the list house\n");
    EXPECT_EQ(hopper.out,
              test::run({"enumerate", sweep, "--arch", "sm_90", "--rules", "house", "--count-only"}).out);
    EXPECT_THAT(hopper.out, testing::Not(HasSubstr("-> 0 configs")));
    EXPECT_EQ(test::run({"enumerate", sweep, "--arch", "gfx950", "--count-only"}).err, "");
    // Who names the list gets no other.
    EXPECT_THAT(test::run({"enumerate", sweep, "--arch", "sm_90", "--rules", "claim"}).err,
                HasSubstr("no rule set \"claim\" for sm_90"));
}

/// A command line that cannot be obeyed, and the words that its message must have.
struct BadInput {
    std::vector<std::string> arguments;
    const char* names;
};

class EnumerateBadInput : public testing::TestWithParam<BadInput> {};

TEST_P(EnumerateBadInput, EndsWithTwoAndNamesTheCulprit) {
    const auto ran = test::run(GetParam().arguments);
    EXPECT_EQ(ran.code, bad_input);
    EXPECT_EQ(ran.out, "");
    EXPECT_THAT(ran.err, HasSubstr(GetParam().names));
}

INSTANTIATE_TEST_SUITE_P(
    CommandLines, EnumerateBadInput,
    testing::Values(BadInput{{"enumerate", "--arch", "gfx000"}, "gfx000"},
                    BadInput{{"enumerate", "--rules", "best"}, "best"},
                    BadInput{{"enumerate", "--profile", "nobody"}, "nobody"},
                    BadInput{{"enumerate", "--profile", "1000"}, "1000"},
                    BadInput{{"enumerate", "--family", "fwd_sideways"}, "fwd_sideways"},
                    BadInput{{"enumerate", "--optdim", "wide"}, "--optdim wide"},
                    BadInput{{"enumerate", "--masks", "generic"}, "mask"},
                    BadInput{{"enumerate", "--where", "c.hdim_q = "}, "\"c.hdim_q = \""},
                    BadInput{{"enumerate", "--where", "c.nonsense = 1"}, "no such column: c.nonsense"},
                    BadInput{{"enumerate", "--where", "1) ATTACH 'x' AS y"}, "closes nothing"},
                    BadInput{{"enumerate", "--where", std::string(1U << 20U, '1')}, "1048576 bytes"},
                    BadInput{{"enumerate", "--where-file", "/nowhere/filter.py"}, "/nowhere/filter.py"},
                    BadInput{{"enumerate", "--support", "--names"},
                             "--support and --names exclude one another"},
                    BadInput{{"enumerate", "--support", "--rules", "ck"}, "--rules is ck"},
                    BadInput{{"enumerate", "--config", "/nowhere/sweep.json"}, "/nowhere/sweep.json"},
                    BadInput{{"enumerate", "--arch-dir", "/nowhere"}, "/nowhere"},
                    BadInput{{"enumerate", "--list", "--names"}, "--list print upstream's lines"},
                    BadInput{{"enumerate", "--max-kernels", "-1"}, "--max-kernels -1"},
                    BadInput{{"enumerate", "a.json", "--config", "b.json"}, "name one configuration"},
                    BadInput{{"enumerate", "--sideways"}, "--sideways"},
                    BadInput{{"parity", "--reason", "x"}, "--accept"},
                    BadInput{{"parity", "--accept", "--arch", "gfx1151"}, "--reason"},
                    BadInput{{"parity", "--accept", "--reason", "x", "--consistency"}, "--consistency"},
                    BadInput{{"parity", "--between", "ck", "nothing"}, "nothing"},
                    BadInput{{"parity", "--between", "ck", "rules", "--consistency"}, "exclude one another"},
                    BadInput{{"parity", "--golden", "--ck-root", "/"}, "exclude one another"},
                    BadInput{{"parity", "--api", "fwd"}, "--api needs --ck-root"},
                    BadInput{{"parity", "--profile", "0"}, "--profile needs --ck-root or --between"},
                    BadInput{{"parity", "--between", "ck", "rules", "--profile", "0,4"}, "one --profile"},
                    BadInput{{"parity", "--rules", "ck", "--ck-root", "/"}, "--rules needs the golden audit"},
                    BadInput{{"parity", "--cases", "/"}, "--cases needs --consistency"},
                    BadInput{{"parity", "--golden-dir", "/nowhere"}, "/nowhere: is not a folder"},
                    BadInput{{"parity", "--ck-root", "/nowhere"}, "/nowhere"},
                    BadInput{{"parity", "--api", "sideways", "--ck-root", "/"}, "sideways"}));

TEST(Parity, PassesForOneSubjectAndWritesItsReport) {
    const system::TemporaryDirectory folder;
    const auto ran =
        test::run({"parity", "--arch", "gfx1151", "--rules", "ck", "--report", folder.path().string()});
    EXPECT_EQ(ran.code, all_well) << ran.out;
    EXPECT_THAT(ran.out, HasSubstr("golden audit: as expected: 1 checks"));
    std::ifstream in(folder.path() / "parity.json");
    EXPECT_EQ(nlohmann::json::parse(in).at("ok"), true);
    EXPECT_TRUE(std::filesystem::exists(folder.path() / "parity.html"));
    EXPECT_TRUE(std::filesystem::exists(folder.path() / "parity.txt"));
}

TEST(Parity, FailsWhenNothingWasCompared) {
    // No architecture file gives gfx1151 this rule set.
    const auto ran = test::run({"parity", "--arch", "gfx1151", "--rules", "claim"});
    EXPECT_EQ(ran.code, check_failed);
    EXPECT_THAT(ran.out, HasSubstr("nothing was compared"));
}

TEST(Parity, ComparesRuleSetsByCause) {
    const auto ran = test::run({"parity", "--between", "ck", "rules", "--arch", "gfx950"});
    EXPECT_EQ(ran.code, all_well) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("because claim has no fwd kernel with the data type mxfp4"));
    EXPECT_THAT(ran.out, HasSubstr("because ck has no batch-prefill kernel with the mode batch"));
    EXPECT_THAT(ran.out, HasSubstr("1 of 1 checks differ, which is no failure"));
    EXPECT_EQ(test::run({"parity", "--between", "claim", "claim", "--arch", "gfx950"}).code, all_well);
}

// A program must not read that all is well and one of its parts is not.
TEST(Parity, AKnownDifferenceIsOkForTheCheckAsForTheWhole) {
    for (const auto& [right, differ] : {std::pair{"rules", true}, {"ck", false}}) {
        const auto ran =
            test::run({"parity", "--between", "ck", right, "--arch", "gfx90a", "--format", "json"});
        EXPECT_EQ(ran.code, all_well) << ran.err;
        const auto report = nlohmann::json::parse(ran.out);
        EXPECT_EQ(report["ok"], true);
        ASSERT_EQ(report["checks"].size(), 1U);
        EXPECT_EQ(report["checks"][0]["ok"], true);
        EXPECT_EQ(report["checks"][0]["differs"], differ);
    }
}

} // namespace
} // namespace fmha::cli
