#include "harness/cases/case_enums.hpp"
#include "harness/cases/case_file.hpp"
#include "harness/cases/case_name.hpp"
#include "harness/cases/case_problem.hpp"
#include "harness/cases/load.hpp"

#include "dispatcher/system/files.hpp"
#include "dispatcher/system/process.hpp"
#include "dispatcher/types/error.hpp"
#include "harness/cases/mask_text.hpp"
#include "tests/harness/cases/malformed.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <random>

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
    for (const auto* text : {"", "3", "causal", "t:", "t:1", "t:1,2,3,4", "t:1,2,-1", "xt:", "xt:1,2", "g:1",
                             "g:-9223372036854775808,1", "t:1,x", "b:1,2 "})
        EXPECT_FALSE(parse_mask(text, unused)) << text;
}

TEST(CaseName, ValuesKeepTheirCommas) {
    Case concrete;
    apply_overrides("mask=t:128,30,4,seqlen_q=[0,1,65],dtype=bf16", "name", concrete);
    EXPECT_EQ(concrete.window_right, 30);
    EXPECT_EQ(concrete.sink_size, 4);
    EXPECT_THAT(concrete.seqlen_q, testing::ElementsAre(0, 1, 65));
    EXPECT_EQ(concrete.data_type, DataType::bf16);
}

constexpr std::string_view two_axes = R"({
  "about": "a", "family": "fwd", "tier": "smoke",
  "set":  { "dtype": "bf16", "batch": 3 },
  "each": { "hdim": [64, "64:32"], "mask": ["0", "t:5,6"] },
  "pair": { "p_drop,dropout_seed": [[0, 0], [0.25, 9]] },
  "also": [{ "seqlen_q": [1, 2, 3], "length_form_q": "seqlen" }],
  "fill": ["normal", "zeros"]
})";

TEST(CaseName, ShowsTheAxesAndWhatDiffersFromTheFile) {
    std::vector<std::string> names;
    for (const auto& concrete : CaseFile::parse(two_axes, "X", "fwd/x").expand(Tier::smoke))
        names.push_back(concrete.id);
    ASSERT_EQ(names.size(), 2U * 2 * 2 * 2 + 2);
    EXPECT_EQ(names[0], "fwd/x[hdim=64,mask=0,p_drop=0,dropout_seed=0]@1");
    EXPECT_EQ(names[1], "fwd/x[hdim=64,mask=0,p_drop=0,dropout_seed=0,fill=zeros]@1");
    EXPECT_EQ(names[2], "fwd/x[hdim=64,mask=0,p_drop=0.25,dropout_seed=9]@1");
    EXPECT_EQ(names[4], "fwd/x[hdim=64,mask=t:5,6,p_drop=0,dropout_seed=0]@1");
    EXPECT_EQ(names[8], "fwd/x[hdim=64:32,mask=0,p_drop=0,dropout_seed=0]@1");
    EXPECT_EQ(names[16],
              "fwd/x[hdim=128,seqlen_q=[1,2,3],length_form_q=seqlen,mask=0,p_drop=0,dropout_seed=0]@1");
}

TEST(CaseName, AnyFieldMayBeOverridden) {
    const auto file = CaseFile::parse(two_axes, "X", "fwd/x");
    const auto shrunk =
        file.from_overrides("hdim_q=8,hdim_v=16,batch=1,seqlen_q=1,dtype=fp32,scale_s=-0.125", "name");
    EXPECT_EQ(shrunk.hdim_q, 8);
    EXPECT_EQ(shrunk.hdim_v, 16);
    EXPECT_EQ(shrunk.batch, 1);
    EXPECT_EQ(shrunk.data_type, DataType::fp32);
    EXPECT_EQ(shrunk.scale_s, -0.125);
    EXPECT_EQ(file.from_overrides(file.name(shrunk).substr(6, file.name(shrunk).find(']') - 6), "name"),
              shrunk);
}

/// The tokens that upstream has for a value (dispatcher-api 5.1) are read; names have the canonical one.
TEST(CaseName, UpstreamsTokensAreReadAndNotWritten) {
    for (const char* const token : {"per_token_head", "ph", "pth"}) {
        Case read;
        read.family = ApiFamily::batch_prefill;
        apply_overrides(std::string("qscale=") + token, "name", read);
        EXPECT_EQ(read.qscale, QScale::per_token_head) << token;
        const auto field = std::ranges::find(case_fields(), std::string_view("qscale"), &CaseField::name);
        EXPECT_EQ(field->print(read), "per_token_head");
    }
    Case read;
    EXPECT_THROW(apply_overrides("qscale=th", "name", read), InputError);
}

/// Property: for random cases, printing every elementary field and reading the text gives the case back.
TEST(CaseName, FieldsPrintAndReadBack) {
    std::mt19937_64 random(20261121);
    const auto pick = [&random](const auto& values) { return values[random() % std::size(values)]; };
    for (int round = 0; round < 500; ++round) {
        Case concrete;
        concrete.data_type = pick(EnumTable<DataType>::names).value;
        concrete.mode = pick(EnumTable<Mode>::names).value;
        concrete.qscale = pick(EnumTable<QScale>::names).value;
        concrete.seqlen_q.assign(1 + random() % 4, static_cast<std::int64_t>(random() % 5000));
        concrete.physical_k.assign(random() % 4, static_cast<std::int64_t>(random() % 5000));
        concrete.wide_batch_stride = static_cast<std::int64_t>(random() >> 2U);
        concrete.mask = pick(EnumTable<MaskType>::names).value;
        if (concrete.mask != MaskType::no_mask) {
            concrete.window_left = static_cast<std::int64_t>(random() % 100) - 1;
            concrete.window_right = static_cast<std::int64_t>(random() % 100) - 1;
            if (concrete.mask != MaskType::window_generic)
                concrete.sink_size = static_cast<std::int64_t>(random() % 9);
        }
        concrete.bias = pick(EnumTable<BiasType>::names).value;
        if (concrete.bias != BiasType::no_bias) concrete.bias_rank = static_cast<int>(random() % 2);
        if (concrete.bias == BiasType::alibi) concrete.negative_slopes = random() % 2 == 0;
        concrete.p_drop = static_cast<double>(random()) * 0x1p-64;
        concrete.scale_s = static_cast<double>(random()) * 0x1p-50 - 1e4;
        concrete.dropout_seed = random();
        concrete.dropout_offset = random();
        concrete.fill = pick(std::array{Fill::normal, Fill::edge_last, Fill::rising});
        concrete.lse = random() % 2 == 0;
        concrete.expect = pick(EnumTable<Expectation>::names).value;
        concrete.expect_rule = concrete.expect == Expectation::pass ? "" : "H-1";

        Case again;
        std::string text;
        for (const auto& field : case_fields())
            if (!field.compound() && field.families.contains(concrete.family))
                text += fmt::format("{}{}={}", text.empty() ? "" : ",", field.name, field.print(concrete));
        apply_overrides(text, "name", again);
        EXPECT_EQ(again, concrete) << text;
    }
}

TEST(CaseName, OfAFileWithBracketsIsAReproducer) {
    const system::TemporaryDirectory root;
    const LoadOptions options{.root = root.path()};
    for (const std::string stem : {"runs[1]/tails", "runs[1/tails", "runs]1/tails", "tails[2]", "tails[3",
                                   "x[hdim=64]", "a@2/tails"}) {
        system::write_file(
            root.path() / (stem + ".json"),
            R"({"about": "a", "family": "fwd", "tier": "smoke", "fill": "normal", "each": {"hdim": [64, 128]}})");
        const auto listed = load_cases({stem}, options);
        EXPECT_EQ(listed.size(), 2U) << stem;
        for (const Case& c : listed) EXPECT_EQ(load_cases({c.id}, options).at(0), c);
        EXPECT_EQ(load_case(stem + "@3", root.path()).seed, 3U);
        const Case lengths = load_case(stem + "[batch=2,seqlen_q=[1,2],length_form_q=seqlen]@4", root.path());
        EXPECT_EQ(load_case(lengths.id, root.path()), lengths);
    }
    EXPECT_EQ(load_cases({"runs[1]"}, options).size(), 2U);
    std::string lengths = "0";
    for (int b = 1; b < 200; ++b) lengths += ",1";
    const std::string longer =
        "tails[2][hdim=64,batch=200,seqlen_q=[" + lengths + "],length_form_q=seqlen]@1";
    EXPECT_EQ(load_cases({longer}, options).at(0).seqlen_q.size(), 200U);
}

/// As in a shell: "." in a folder of one's own is no order to run the whole matrix.
TEST(CaseName, ThatStartsHereIsOfTheWorkingFolderAlone) {
    const system::TemporaryDirectory folder;
    const std::string text = test::file("");
    const auto root = folder.path() / "cases", here = folder.path() / "here";
    for (const char* file : {"cases/fwd/theirs.json", "here/own.json"})
        system::write_file(folder.path() / file, text);
    const auto before = std::filesystem::current_path();
    std::filesystem::current_path(here);
    const LoadOptions options{.root = root};
    const auto names_of = [&](const std::string& name) {
        std::vector<std::string> names;
        const std::string said = test::complaint([&] {
            for (const Case& c : load_cases({name}, options)) names.push_back(c.id);
        });
        return said == "accepted" ? fmt::format("{}", fmt::join(names, " ")) : said;
    };
    EXPECT_EQ(names_of("."), "./own@1");
    for (const char* own : {"./own", "./own.json", "./own@1"}) EXPECT_EQ(names_of(own), "./own@1") << own;
    EXPECT_EQ(names_of("../here/own"), "../here/own@1");
    EXPECT_EQ(names_of("fwd"), "fwd/theirs@1");
    EXPECT_EQ(names_of("./fwd"), "./fwd: no case file, folder or case of that name (looked here)");
    EXPECT_EQ(load_cases({}, {.root = "../cases"}).at(0).id, "fwd/theirs@1") << "the root may start here";
    std::filesystem::current_path(before);
}

TEST(CaseName, BeginsWithItsFile) {
    for (const auto& [name, before] :
         {std::pair{"[fwd/tiny]", "'['"}, {"[]", "'['"}, {"[hdim=8]@1", "'['"}, {"@1", "'@'"}})
        try {
            load_cases({name}, {.root = FMHA_CASES_DIR});
            ADD_FAILURE() << name;
        } catch (const InputError& error) {
            EXPECT_EQ(error.what(), fmt::format("{}: no case file stands before {}; expected one, as in "
                                                "fwd/tiny[hdim=8]@1",
                                                name, before));
        }
}

TEST(CaseSeed, DependsOnRunAndNameButNotOnTheSeedInTheName) {
    EXPECT_EQ(case_seed(7, "fwd/x[hdim=64]@1"), case_seed(7, "fwd/x[hdim=64]@2"));
    EXPECT_NE(case_seed(7, "fwd/x[hdim=64]@1"), case_seed(8, "fwd/x[hdim=64]@1"));
    EXPECT_NE(case_seed(7, "fwd/x[hdim=64]@1"), case_seed(7, "fwd/x[hdim=65]@1"));
    // Seeds are part of names that people keep: this value may never change.
    EXPECT_EQ(case_seed(7, "fwd/x[hdim=64]@1"), 3317631039547665730U);
}

TEST(Shards, PartitionTheCasesInOrder) {
    std::vector<Case> cases(10);
    for (std::size_t i = 0; i < cases.size(); ++i) cases[i].seed = i;
    std::vector<std::uint64_t> seen;
    for (std::uint64_t index = 1; index <= 3; ++index)
        for (const auto& concrete : take_shard(cases, {index, 3})) seen.push_back(concrete.seed);
    EXPECT_THAT(seen, testing::ElementsAre(0, 3, 6, 9, 1, 4, 7, 2, 5, 8));
    EXPECT_EQ(take_shard(cases, parse_shard("1/1")).size(), 10U);
    EXPECT_TRUE(take_shard(cases, parse_shard("11/12")).empty());
}

TEST(CaseProblem, SaysWhichStridesTensorMapsCannotHave) {
    Case wide;
    wide.seqlen_q = wide.seqlen_k = {128, 128};
    const auto mappable = [&](const char* tensor, std::int64_t stride) {
        wide.wide_tensor = tensor;
        wide.wide_batch_stride = stride;
        return to_problem(wide, "sm_90").tensors_mappable;
    };
    constexpr std::int64_t beyond = std::int64_t{1} << 39; // elements of 2 bytes
    EXPECT_TRUE(mappable("", 0));
    for (const char* tensor : {"q", "k", "v"}) {
        EXPECT_FALSE(mappable(tensor, beyond)) << tensor;
        EXPECT_TRUE(mappable(tensor, beyond - 8)) << tensor;
    }
    EXPECT_TRUE(mappable("o", beyond));
    wide.batch = 1;
    wide.seqlen_q = wide.seqlen_k = {128};
    EXPECT_TRUE(mappable("k", beyond));
}

} // namespace
} // namespace fmha::harness
