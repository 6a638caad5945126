// The promises of the shipped matrix: sizes per tier, a budget of work, and the pair table without empty cells.

#include "harness/cases/case_enums.hpp"
#include "harness/cases/case_file.hpp"
#include "harness/cases/load.hpp"
#include "harness/run/planned_kernels.hpp"

#include <algorithm>
#include <gmock/gmock.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

namespace fmha::harness {
namespace {

using testing::Contains;
using testing::Ge;

const std::filesystem::path root = FMHA_CASES_DIR;

std::vector<Case> shipped(Tier tier) {
    return load_cases({}, {.root = root, .tier = tier, .planned_tile = house_tiles("gfx950")});
}

/// Floating-point operations of the two products of one run.
double work(const Case& c) {
    double pairs = 0;
    for (std::size_t b = 0; b < static_cast<std::size_t>(c.batch); ++b) {
        const auto length = [b](const std::vector<std::int64_t>& list) {
            return static_cast<double>(list[list.size() > 1 ? b : 0]);
        };
        pairs += length(c.seqlen_q) * length(c.seqlen_k);
    }
    return 2 * pairs * static_cast<double>(c.nhead_q) * static_cast<double>(c.hdim_q + c.hdim_v);
}

TEST(Matrix, TiersHaveTheirSizes) {
    const auto smoke = shipped(Tier::smoke), full = shipped(Tier::full);
    EXPECT_THAT(smoke.size(), Ge(400U));
    EXPECT_THAT(full.size(), Ge(4000U));
    std::set<std::string> names;
    for (const auto& concrete : full) names.insert(concrete.id);
    for (const auto& concrete : smoke)
        EXPECT_TRUE(names.contains(concrete.id)) << concrete.id << " is missing in full";
}

TEST(Matrix, SmokeStaysWithinItsBudgetOfWork) {
    double total = 0;
    for (const auto& concrete : shipped(Tier::smoke)) {
        EXPECT_LT(work(concrete), 0.5e9) << concrete.id;
        total += work(concrete);
    }
    EXPECT_LT(total, 61e9);
}

TEST(Matrix, EveryConfigurationRunsNormalAndIndexed) {
    std::set<DataType> types[2];
    for (const auto& concrete : shipped(Tier::smoke)) {
        if (concrete.fill == Fill::normal) types[0].insert(concrete.data_type);
        if (concrete.fill == Fill::indexed) types[1].insert(concrete.data_type);
    }
    EXPECT_EQ(types[0].size(), EnumTable<DataType>::names.size());
    EXPECT_EQ(types[1].size(), EnumTable<DataType>::names.size());
}

TEST(Matrix, PairTableHasNoEmptyCell) {
    const auto tables = pair_tables({}, {.root = root, .tier = Tier::smoke});
    ASSERT_FALSE(tables.empty());
    for (const auto& [stem, table] : tables) {
        EXPECT_EQ(table.empty_cells(), 0) << stem;
        EXPECT_THAT(table.to_text(), testing::HasSubstr("\n0 empty cells\n"));
        if (!stem.ends_with("pairs")) continue; // rows that cover less than all features of a family
        std::set<std::string> features;
        for (const PairTable::Level& level : table.levels) features.insert(level.feature);
        const std::set<std::string> of_backward{"dtype",         "mask",   "bias,…",        "p_drop,…",
                                                "sink_logits",   "heads",  "hdim",          "layout",
                                                "deterministic", "mode,…", "compute_units", "stride_padding"};
        const std::set<std::string> of_forward{"dtype,…",  "mask",        "bias",  "lse",  "logits_soft_cap",
                                               "p_drop,…", "sink_logits", "heads", "hdim", "layout",
                                               "v_layout", "mode,…"};
        const std::set<std::string> of_append{"dtype,…",  "heads",       "hdim",   "seqlen_q",
                                              "seqlen_k", "seqlen_knew", "layout", "stride_padding",
                                              "mask",     "page_size,…"};
        const std::set<std::string> of_pages{"dtype",           "mask",           "bias",   "lse",
                                             "logits_soft_cap", "sink_logits",    "heads",  "hdim",
                                             "layout",          "stride_padding", "mode,…", "page_size,…"};
        const std::set<std::string> of_prefill{
            "dtype,…", "mask",   "bias",           "lse",          "logits_soft_cap", "sink_logits", "heads",
            "hdim",    "layout", "stride_padding", "shared_pages", "kv_layout,…",     "seqlen_q,…"};
        std::set<std::string> of_splits = of_pages;
        of_splits.erase("dtype");
        of_splits.insert({"dtype,…", "num_splits"});
        const std::set<std::string> of_combine{"dtype,…", "num_splits",    "partial_lse", "hdim",
                                               "heads",   "lse",           "sink_logits", "layout",
                                               "mode,…",  "stride_padding"};
        const std::set<std::string>& expected = stem.starts_with("fwd/")              ? of_forward
                                                : stem.starts_with("bwd/")            ? of_backward
                                                : stem.starts_with("appendkv/")       ? of_append
                                                : stem.starts_with("batch_prefill/")  ? of_prefill
                                                : stem.starts_with("splitkv/combine") ? of_combine
                                                : stem.starts_with("splitkv/")        ? of_splits
                                                                                      : of_pages;
        EXPECT_TRUE(std::ranges::includes(features, expected)) << stem;
    }
}

TEST(Matrix, FourteenParityConfigurations) {
    const auto cases = load_cases({"fwd/parity"}, {.root = root});
    EXPECT_EQ(cases.size(), 2U * 14U);
}

/// The labels of every file that is registered with CTest: of its lowest tier, as CTest has them.
std::map<std::string, std::vector<std::string>> registered_labels() {
    std::map<std::string, std::vector<std::string>> registered;
    std::ifstream list(FMHA_CASE_LIST);
    for (std::string line; std::getline(list, line);) {
        std::istringstream words(line);
        std::string stem, label;
        if (!(words >> stem)) continue;
        while (words >> label) registered[stem].push_back(label);
    }
    return registered;
}

/// Globbing finds new files at configure time, but the running ones must also be on record: the list in CMake and
/// the folder have to agree.
TEST(Matrix, EveryCaseFileIsRegisteredWithCTest) {
    std::set<std::string> on_disk, registered;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root))
        if (entry.path().extension() == ".json" && entry.path().parent_path().filename() != "sweeps")
            on_disk.insert(entry.path().lexically_relative(root).replace_extension().generic_string());
    for (const auto& [stem, labels] : registered_labels()) registered.insert(stem);
    EXPECT_EQ(on_disk, registered);
}

TEST(Matrix, TheLabelsOfACaseFileAreThoseOfItsTests) {
    const LoadOptions options{.root = root, .tier = Tier::nightly, .planned_tile = house_tiles("gfx950")};
    for (const auto& [stem, labels] : registered_labels()) {
        ASSERT_GE(labels.size(), 3U) << stem;
        EXPECT_TRUE(parse_enum<Tier>(labels[2])) << stem;
        std::vector<std::string> expected{"case", stem.substr(0, stem.find('/')), labels[2]};
        const Case one = load_cases({stem}, options).front();
        expected.insert(expected.end(), one.labels.begin(), one.labels.end());
        EXPECT_EQ(labels, expected) << stem;
    }
}

} // namespace
} // namespace fmha::harness
