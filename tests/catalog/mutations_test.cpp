// No table can be wrong silently: one entry changed, and the lists differ by exactly that change.

#include "dispatcher/types/error.hpp"
#include "tests/catalog/catalog_support.hpp"

#include <gmock/gmock.h>

#include <algorithm>

namespace fmha::catalog::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using enum KernelFamily;

struct Mutation {
    std::string title, file, arch;
    RuleSet rules;
    std::function<void(json&)> change;
    /// Every lost and gained name contains these words; none = nothing may be lost or gained.
    std::vector<std::string> lost, gained;
    std::size_t lost_count = 0, gained_count = 0; ///< 0 = at least one where words are given
};

json& family(json& table, const char* name) {
    return table.at("families").at(name);
}

/// The row of a tile table for a data type and a query head dimension.
json& tile_row(json& part, const std::string& type, int hdim) {
    for (json& row : part.at("tiles"))
        if (row.at("hdim").at(0) == hdim &&
            std::count(row.at("data_types").begin(), row.at("data_types").end(), type))
            return row;
    throw std::logic_error("no row for " + type);
}

void erase_value(json& list, const json& value) {
    list.erase(std::find(list.begin(), list.end(), value));
}

const char* const gfx9 = "tables/ck/gfx9.json";
const char* const gfx950 = "tables/ck/gfx950.json";
const char* const cdna = "tables/house/cdna.json";
const char* const hopper = "tables/house/hopper.json";

std::vector<Mutation> mutations() {
    return {
        {"fwd: drop a tile",
         gfx9,
         "gfx942",
         RuleSet::ck,
         [](json& t) { tile_row(family(t, "fwd"), "fp16", 128).at("tiles").erase(3); },
         {"fmha_fwd_d128_", "_b64x128x32x128x32x128_"},
         {},
         2 * 384,
         0},
        {"fwd: change the waves",
         gfx9,
         "gfx942",
         RuleSet::ck,
         [](json& t) { tile_row(family(t, "fwd"), "fp16", 256).at("tiles").at(0)["waves"] = 2; },
         {"fmha_fwd_d256_", "_r4x1x1_r4x1x1_"},
         {"fmha_fwd_d256_", "_r2x1x1_r2x1x1_"},
         2 * 640,
         2 * 640},
        {"fwd: change the warp tile",
         gfx9,
         "gfx942",
         RuleSet::ck,
         [](json& t) {
             tile_row(family(t, "fwd"), "fp16", 32).at("tiles").at(0)["warp"] = {16, 16, 32};
         },
         {"fmha_fwd_d32_", "_w32x32x16_w32x32x16_"},
         {"fmha_fwd_d32_", "_w16x16x32_w16x16x32_"},
         2 * 384,
         2 * 384},
        {"fwd: remove a data type",
         gfx9,
         "gfx942",
         RuleSet::ck,
         [](json& t) { erase_value(family(t, "fwd").at("data_types"), "fp8fp32"); },
         {"_fp8fp32_"},
         {},
         72,
         0},
        {"fwd: set an occupancy",
         gfx9,
         "gfx942",
         RuleSet::ck,
         [](json& t) { tile_row(family(t, "fwd"), "fp16", 64).at("tiles").at(2)["block_per_cu"] = 2; },
         {"fmha_fwd_d64_", "_w32x32x16_qr"},
         {"fmha_fwd_d64_", "_w32x32x16_o2_qr"},
         2 * 384,
         2 * 384},
        {"fwd: remove a pipeline entry",
         gfx9,
         "gfx942",
         RuleSet::ck,
         [](json& t) { family(t, "fwd").at("pipelines").at(1).at("entries").erase(1); },
         {"fmha_fwd_d256_", "_qr_vr_pssk_"},
         {},
         2 * 2 * 128,
         0},
        {"fwd: change a padding",
         gfx9,
         "gfx942",
         RuleSet::ck,
         [](json& t) { family(t, "fwd").at("pipelines").at(1).at("entries").at(1)["pad"] = "tftt"; },
         {"_pssk_"},
         {"_psddv_", "_batch_"},
         2 * 2 * 128,
         2 * 128},
        {"fwd: remove an axis value",
         gfx9,
         "gfx942",
         RuleSet::ck,
         [](json& t) {
             erase_value(family(t, "fwd").at("pipelines").at(4).at("axes").at("qscale"), "blockscale");
         },
         {"_blockscale_"},
         {},
         0,
         0},
        {"fwd: remove a rule",
         gfx9,
         "gfx942",
         RuleSet::ck,
         [](json& t) { erase_value(family(t, "fwd").at("rules"), "R3"); },
         {},
         {"_logits_"},
         0,
         0},
        {"fwd gfx950: change an appended tile",
         gfx950,
         "gfx950",
         RuleSet::ck,
         [](json& t) { family(t, "fwd").at("tiles").at(0).at("tiles").at(0).at("block")[1] = 128; },
         {"_v3_", "_b256x64x128x128x64x128_"},
         {"_v3_", "_b256x128x128x128x64x128_"},
         16,
         16},
        {"splitkv: drop a head dimension",
         gfx9,
         "gfx942",
         RuleSet::ck,
         [](json& t) { family(t, "fwd_splitkv").at("tiles").erase(2); },
         {"fmha_fwd_splitkv_d96_"},
         {},
         384,
         0},
        {"combine: change the columns",
         gfx9,
         "gfx942",
         RuleSet::ck,
         [](json& t) {
             tile_row(family(t, "fwd_splitkv_combine"), "fp16", 32).at("tiles").at(0).at("block")[3] = 64;
         },
         {"combine_d32_", "_b32_"},
         {"combine_d32_", "_b64_"},
         24,
         24},
        {"pagedkv: remove a data type of a row",
         gfx9,
         "gfx942",
         RuleSet::ck,
         [](json& t) { erase_value(family(t, "fwd_pagedkv").at("tiles").at(0).at("data_types"), "bf16"); },
         {"fmha_fwd_pagedkv_d128_bf16_"},
         {},
         48,
         0},
        {"appendkv: remove a rotation",
         gfx9,
         "gfx942",
         RuleSet::ck,
         [](json& t) { family(t, "fwd_appendkv").at("pipelines").at(0).at("entries").erase(4); },
         {"fmha_fwd_appendkv_", "_half"},
         {},
         2 * 4 * 2,
         0},
        {"batch_prefill: remove a page size",
         gfx9,
         "gfx942",
         RuleSet::ck,
         [](json& t) { erase_value(family(t, "batch_prefill").at("page_sizes"), 16); },
         {"_ps16_"},
         {},
         0,
         0},
        {"bwd: change the third product's waves",
         gfx9,
         "gfx942",
         RuleSet::ck,
         [](json& t) { family(t, "bwd").at("tiles").at(3).at("waves")[6] = 4; },
         {"fmha_bwd_d32_", "_r2x2x1_"},
         {"fmha_bwd_d32_", "_r4x2x1_"},
         2 * 672,
         2 * 672},
        {"bwd gfx950: lift a length limit",
         gfx950,
         "gfx950",
         RuleSet::ck,
         [](json& t) { family(t, "bwd").at("tiles").at(3).at("max_seq_q") = 16; },
         {"fmha_bwd_d64_", "_maxq32_"},
         {"fmha_bwd_d64_", "_maxq16_"},
         96,
         96},
        {"house: drop an extension row",
         cdna,
         "gfx950",
         RuleSet::house,
         [](json& t) { family(t, "fwd").at("pipelines").erase(7); },
         {"_vcol"},
         {},
         0,
         0},
        {"house: remove a type from its list",
         cdna,
         "gfx950",
         RuleSet::house,
         [](json& t) { erase_value(family(t, "fwd").at("data_types"), "bf8"); },
         {"fwd_gfx950_bf8_"},
         {},
         0,
         0},
        {"house: an imported tile changes",
         gfx9,
         "gfx90a",
         RuleSet::house,
         [](json& t) { tile_row(family(t, "fwd"), "fp32", 32).at("tiles").at(0)["waves"] = 2; },
         {"fwd_gfx90a_fp32_", "_h32x32_"},
         {"fwd_gfx90a_fp32_", "_h32x32_", "_w2x1x1x2x1x1_"},
         0,
         0},
        {"house: fewer waves have keys of their own",
         hopper,
         "sm_90",
         RuleSet::house,
         [](json& t) { tile_row(family(t, "fwd_splitkv"), "fp16", 64).at("tiles").at(0)["key_waves"] = 2; },
         {"fwd_splitkv_sm_90_", "_h64x64_", "_w1x4x1x1x1x4_"},
         {"fwd_splitkv_sm_90_", "_h64x64_", "_w1x2x1x1x1x2_"},
         192,
         192},
        {"hardware: remove a data type",
         "gfx950.json",
         "gfx950",
         RuleSet::house,
         [](json& t) { erase_value(t.at("hardware").at("data_types"), "mxfp4"); },
         {"_mxfp4_"},
         {},
         0,
         0},
        {"hardware: remove a pipeline",
         "gfx950.json",
         "gfx950",
         RuleSet::house,
         [](json& t) { erase_value(t.at("hardware").at("pipelines"), "qr_async_trload"); },
         {"_trload"},
         {},
         0,
         0},
    };
}

TEST(Mutations, EachIsNamedPrecisely) {
    const arch::ArchSet original = arch::ArchSet::built_in();
    for (const Mutation& mutation : mutations()) {
        SCOPED_TRACE(mutation.title);
        const Request r = request(mutation.rules, {ArchName(mutation.arch)});
        const arch::ArchSet archs = changed(mutation.file, mutation.change);
        const Difference found = difference(name_set(original, r), name_set(archs, r));
        const auto check = [](const std::vector<std::string>& names, const std::vector<std::string>& words,
                              std::size_t count) {
            if (words.empty()) {
                EXPECT_THAT(names, IsEmpty());
                return;
            }
            EXPECT_THAT(names, Not(IsEmpty()));
            if (count > 0) {
                EXPECT_THAT(names, SizeIs(count));
            }
            for (const std::string& word : words) EXPECT_THAT(names, Each(HasSubstr(word)));
        };
        check(found.lost, mutation.lost, mutation.lost_count);
        check(found.gained, mutation.gained, mutation.gained_count);
    }
}

struct BadFile {
    std::string title, file;
    std::function<void(json&)> change;
    std::vector<std::string> says; ///< file, path, value
};

TEST(Schema, ErrorsNameFilePathAndValue) {
    const std::vector<BadFile> bad{
        {"unknown key",
         gfx9,
         [](json& t) { family(t, "fwd")["tile"] = 1; },
         {"tables/ck/gfx9.json#/families/fwd", "tile"}},
        {"wrong type",
         gfx9,
         [](json& t) { tile_row(family(t, "fwd"), "fp16", 32).at("tiles").at(0)["waves"] = "4"; },
         {"tables/ck/gfx9.json#/families/fwd/tiles/7/tiles/0/waves", "\"4\""}},
        {"short block",
         gfx9,
         [](json& t) {
             tile_row(family(t, "fwd"), "fp16", 32).at("tiles").at(0)["block"] = {1, 2};
         },
         {"#/families/fwd/tiles/7/tiles/0/block", "[1,2]"}},
        {"unknown data type",
         gfx9,
         [](json& t) { family(t, "fwd").at("data_types").push_back("fp8fp16"); },
         {"#/families/fwd/data_types/6", "\"fp8fp16\""}},
        {"bad padding",
         cdna,
         [](json& t) { family(t, "fwd").at("pipelines").at(0).at("entries").at(0)["pad"] = "ffx"; },
         {"tables/house/cdna.json#/families/fwd/pipelines/0/entries/0/pad", "\"ffx\""}},
        {"missing hardware",
         "gfx950.json",
         [](json& t) { t.at("hardware").erase("lds_bytes"); },
         {"gfx950.json#/hardware", "lds_bytes"}},
        {"bad arch name", "gfx950.json", [](json& t) { t["arch"] = "1"; }, {"gfx950.json#/arch", "\"1\""}},
        {"duplicate arch",
         "gfx950.json",
         [](json& t) { t["arch"] = "gfx942"; },
         {"gfx950.json#/arch", "gfx942"}},
        {"table that is not there",
         "gfx950.json",
         [](json& t) { t["rule_sets"]["ck"][0] = "tables/ck/gfx1.json"; },
         {"tables/ck/gfx1.json", "tables/ck/gfx9.json"}},
    };
    for (const BadFile& file : bad) {
        SCOPED_TRACE(file.title);
        try {
            changed(file.file, file.change);
            ADD_FAILURE() << "accepted";
        } catch (const InputError& error) {
            for (const std::string& word : file.says) EXPECT_THAT(error.what(), HasSubstr(word));
        }
    }
}

TEST(Schema, BuiltInFilesPass) {
    EXPECT_GE(changed("", {}).all().size(), 6U);
}

TEST(Schema, MeaningIsCheckedWhenTablesAreRead) {
    const Request r = request(RuleSet::ck, {"gfx950"});
    const auto error_of = [&](const std::string& file,
                              const std::function<void(json&)>& change) -> std::string {
        try {
            names(changed(file, change), r);
        } catch (const InputError& error) {
            return error.what();
        }
        return "accepted";
    };
    EXPECT_THAT(error_of(gfx9, [](json& t) { family(t, "fwd").at("rules").push_back("R99"); }),
                AllOf(HasSubstr("gfx9.json#/families/fwd/rules"), HasSubstr("R99"), HasSubstr("R10")));
    EXPECT_THAT(error_of(gfx950, [](json& t) { family(t, "fwd").at("tiles").at(0).erase("change"); }),
                AllOf(HasSubstr("gfx950.json#/families/fwd/tiles/0"), HasSubstr("fp8bf16 (128,128)")));
    EXPECT_THAT(error_of(gfx950, [](json& t) { family(t, "fwd")["base"] = "gfx950"; }),
                AllOf(HasSubstr("gfx950.json#/families/fwd/base"), HasSubstr("circle")));
    EXPECT_THAT(error_of(gfx950, [](json& t) { family(t, "bwd")["base"] = "gfx8"; }), HasSubstr("gfx8"));
    for (const char* name : {"fwd", "bwd"})
        EXPECT_THAT(error_of(gfx950, [&](json& t) { family(t, name)["import_tiles"] = gfx950; }),
                    HasSubstr(std::string("gfx950.json#/families/") + name +
                              "/import_tiles: \"tables/ck/gfx950.json\" closes a circle of imports"));
}

} // namespace
} // namespace fmha::catalog::test
