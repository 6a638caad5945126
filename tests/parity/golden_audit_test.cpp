#include "parity/golden_audit.hpp"

#include "dispatcher/system/process.hpp"
#include "dispatcher/types/error.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>

namespace fmha::parity {
namespace {

using catalog::RuleSet;
using testing::HasSubstr;
using testing::Not;

/// One entry of one table changed, and the sentence that the audit must have about it.
struct Mutation {
    const char* what;
    const char* table; ///< file in the architecture folder
    const char* patch; ///< JSON patch
    const char* arch;
    RuleSet rules;
    std::vector<const char*> expected; ///< parts of the audit's text
};

void PrintTo(const Mutation& mutation, std::ostream* out) {
    *out << mutation.table << " " << mutation.what;
}

arch::ArchSet mutated(const Mutation& mutation) {
    std::vector<std::string> texts;
    std::vector<arch::ArchSet::File> files;
    bool found = false;
    for (const auto& file : arch::ArchSet::built_in_files()) {
        texts.emplace_back(file.text);
        if (file.path != mutation.table) continue;
        found = true;
        texts.back() = nlohmann::ordered_json::parse(file.text)
                           .patch(nlohmann::ordered_json::parse(mutation.patch))
                           .dump();
    }
    EXPECT_TRUE(found) << "no table " << mutation.table;
    std::size_t i = 0;
    for (const auto& file : arch::ArchSet::built_in_files()) files.push_back({file.path, texts[i++]});
    return arch::ArchSet::parse(files, false);
}

class GoldenMutation : public testing::TestWithParam<Mutation> {};

TEST_P(GoldenMutation, IsNamedByTheAudit) {
    const Mutation& mutation = GetParam();
    const auto report =
        audit_golden(mutated(mutation), FMHA_GOLDEN_DIR, {{mutation.rules}, {ArchName(mutation.arch)}, true});
    EXPECT_FALSE(report.ok());
    const auto text = to_text(report);
    for (const char* part : mutation.expected) EXPECT_THAT(text, HasSubstr(part));
}

INSTANTIATE_TEST_SUITE_P(
    CkTables, GoldenMutation,
    testing::Values(
        Mutation{"drops a tile",
                 "tables/ck/gfx9.json",
                 R"([{"op": "remove", "path": "/families/fwd_pagedkv/tiles/0/tiles/0"}])",
                 "gfx942",
                 RuleSet::ck,
                 {"fwd_pagedkv, simplified masks: 168 -> 72 kernels (in ck_default",
                  "lost        48  fmha_fwd_pagedkv_d128_bf16", "tables: no entry gives"}},
        Mutation{
            "changes a matrix instruction",
            "tables/ck/gfx9.json",
            R"([{"op": "replace", "path": "/families/fwd_pagedkv/tiles/0/tiles/0/warp", "value": [16, 16, 32]}])",
            "gfx90a",
            RuleSet::ck,
            {"fwd_pagedkv, simplified masks: 168 kernels as before, with other names", "lost        96",
             "gained      64", "w16x16x32_w16x16x32"}},
        Mutation{
            "removes a data type",
            "tables/ck/gfx9.json",
            R"([{"op": "remove", "path": "/families/fwd_splitkv/data_types/2"}])",
            "gfx950",
            RuleSet::ck,
            {"fwd_splitkv, simplified masks: 1968 -> 1920 kernels", "lost        48  fmha_fwd_splitkv_d"}},
        Mutation{"drops a tile",
                 "tables/ck/gfx950.json",
                 R"([{"op": "remove", "path": "/families/fwd/tiles/1/tiles/0"}])",
                 "gfx950",
                 RuleSet::ck,
                 {"fwd, simplified masks: 7464 -> 7440 kernels", "lost        24  fmha_fwd_d128_mxfp"}},
        Mutation{"changes a matrix instruction",
                 "tables/ck/gfx950.json",
                 R"([{"op": "replace", "path": "/families/fwd/tiles/1/tiles/0/warp/2", "value": 32}])",
                 "gfx950",
                 RuleSet::ck,
                 {"7464 kernels as before, with other names", "w32x32x32_w32x32x32"}},
        Mutation{"removes a data type",
                 "tables/ck/gfx950.json",
                 R"([{"op": "remove", "path": "/families/fwd/data_types/1"}])",
                 "gfx950",
                 RuleSet::ck,
                 {"7464 -> 7440 kernels", "_mxfp4"}},
        Mutation{"drops a tile",
                 "tables/ck/gfx11.json",
                 R"([{"op": "remove", "path": "/families/fwd/tiles/1/tiles/1"}])",
                 "gfx1100",
                 RuleSet::ck,
                 {"fwd, simplified masks: 5888 -> 4864 kernels",
                  "fmha_fwd_d64_bf16_batch_b128x64x32x64x32x64", "tables: no entry gives"}},
        Mutation{"changes a matrix instruction",
                 "tables/ck/gfx11.json",
                 R"([{"op": "replace", "path": "/families/fwd/tiles/4/tiles/0/warp/2", "value": 32}])",
                 "gfx1100",
                 RuleSet::ck,
                 {"w16x16x32_w16x16x32"}},
        Mutation{"removes a data type",
                 "tables/ck/gfx11.json",
                 R"([{"op": "remove", "path": "/families/bwd/data_types/1"}])",
                 "gfx1100",
                 RuleSet::ck,
                 {"bwd_dq_dk_dv, simplified masks: 5376 -> 2688 kernels", "_bf16"}},
        Mutation{"changes a tile",
                 "tables/ck/gfx115.json",
                 R"([{"op": "replace", "path": "/families/fwd/tiles/0/tiles/0/block/0", "value": 128}])",
                 "gfx1151",
                 RuleSet::ck,
                 {"\"b64x64x32x64x32x64\" became \"b128x64x32x64x32x64\""}},
        Mutation{"drops a tile",
                 "tables/ck/gfx12.json",
                 R"([{"op": "remove", "path": "/families/fwd/tiles/0/tiles/0"}])",
                 "gfx1201",
                 RuleSet::ck,
                 {"fmha_fwd_d32"}},
        Mutation{"removes a data type",
                 "tables/ck/gfx12.json",
                 R"([{"op": "remove", "path": "/families/fwd/data_types/2"}])",
                 "gfx1201",
                 RuleSet::ck,
                 {"_fp8_"}}));

INSTANTIATE_TEST_SUITE_P(
    OtherTables, GoldenMutation,
    testing::Values(
        Mutation{"drops a tile",
                 "tables/rules/forward_cdna.json",
                 R"([{"op": "remove", "path": "/forward_tiles/0/tiles/0"}])",
                 "gfx950",
                 RuleSet::claim,
                 {"fwd, tile_k0 16: 2304 -> 1152 records", "lost      1152  fmha_fwd_"}},
        Mutation{"removes a data type",
                 "tables/rules/claim.json",
                 R"([{"op": "remove", "path": "/data_types/fwd/3"}])",
                 "gfx942",
                 RuleSet::claim,
                 {"fwd, data_type fp8fp32: 108 -> 0 records", "lost       108  fmha_fwd_fp8fp32"}},
        Mutation{"drops a tile",
                 "tables/rules/variants.json",
                 R"([{"op": "remove", "path": "/pagedkv_tiles/0/tiles/0"}])",
                 "gfx1201",
                 RuleSet::stored,
                 {"fwd_pagedkv, data_type bf16: 72 -> 0 records", "fmha_fwd_pagedkv_"}},
        Mutation{"changes the matrix instruction of a backward tile, which no name shows",
                 "tables/rules/backward.json",
                 R"([{"op": "replace", "path": "/wave_warp/0/warp_k1", "value": 32}])",
                 "gfx950",
                 RuleSet::claim,
                 {"bwd_dq_dk_dv, warp 16x16x32x16x16x32"}},
        Mutation{"adds a tile",
                 "tables/rules/forward_rdna.json",
                 R"([{"op": "add", "path": "/forward_tiles/0/tiles/0", "value": [128, 64, 16, 32, 32, 32]}])",
                 "gfx1100",
                 RuleSet::stored,
                 {"gained", "t128x64x16x32x32x32"}},
        Mutation{"drops a tile",
                 "tables/rules/forward_gfx950_stored.json",
                 R"([{"op": "remove", "path": "/forward_tiles/2/tiles/0"}])",
                 "gfx950",
                 RuleSet::stored,
                 {"lost", "t128x128x32x160x32x160"}},
        Mutation{"drops a tile size",
                 "tables/sweep/tables.json",
                 R"([{"op": "remove", "path": "/m0/5"}])",
                 "gfx1100",
                 RuleSet::sweep,
                 {"fwd, tile_m0 256: ", " -> 0 records"}},
        Mutation{"drops a tile",
                 "tables/house/cdna.json",
                 R"([{"op": "remove", "path": "/families/fwd/tiles/0/tiles/0"}])",
                 "gfx942",
                 RuleSet::house,
                 {"lost", "fwd_gfx942_bf8_", "h64x64"}},
        Mutation{"changes a matrix instruction",
                 "tables/house/hopper.json",
                 R"([{"op": "replace", "path": "/families/fwd/tiles/0/tiles/0/warp/2", "value": 32}])",
                 "sm_90",
                 RuleSet::house,
                 {"fwd, warp 16x8x32x16x8x32"}},
        Mutation{"removes a data type",
                 "tables/house/rdna4.json",
                 R"([{"op": "remove", "path": "/families/fwd/data_types/0"}])",
                 "gfx1201",
                 RuleSet::house,
                 {"lost", "fwd_gfx1201_"}},
        Mutation{"removes a data type",
                 "tables/house/rdna3.json",
                 R"([{"op": "remove", "path": "/families/fwd/data_types/0"}])",
                 "gfx1100",
                 RuleSet::house,
                 {"lost", "fwd_gfx1100_"}},
        Mutation{"drops a pipeline",
                 "tables/house/common.json",
                 R"([{"op": "remove", "path": "/families/fwd_splitkv/pipelines/0/entries/0"}])",
                 "gfx90a",
                 RuleSet::house,
                 {"lost", "fwd_splitkv_gfx90a_"}}));

/// Golden files of a small subject in a folder of the test's own.
class Acceptance : public testing::Test {
  protected:
    GoldenScope scope_{{RuleSet::ck}, {ArchName("gfx1151")}, true};
    arch::ArchSet archs_ = arch::ArchSet::built_in();
    system::TemporaryDirectory folder_;

    std::string text_of(const char* name) const {
        std::ifstream in(folder_.path() / name);
        return {std::istreambuf_iterator<char>(in), {}};
    }
};

TEST_F(Acceptance, ReportsMissingGoldenFacts) {
    const auto report = audit_golden(archs_, folder_.path(), scope_);
    EXPECT_FALSE(report.ok());
    EXPECT_THAT(to_text(report), HasSubstr("there are no golden facts"));
}

TEST_F(Acceptance, NeedsAReason) {
    EXPECT_THROW(accept_golden(archs_, folder_.path(), scope_, " ", "2026-05-17"), InputError);
    EXPECT_FALSE(std::filesystem::exists(folder_.path() / "ck"));
}

TEST_F(Acceptance, RecordsTheReasonAndWritesNothingWithoutChange) {
    accept_golden(archs_, folder_.path(), scope_, "first listing", "2026-05-17");
    EXPECT_THAT(text_of("ck/gfx1151.json"), HasSubstr(R"("date": "2026-05-17")"));
    EXPECT_THAT(text_of("ck/gfx1151.json"), HasSubstr(R"("reason": "first listing")"));
    EXPECT_TRUE(audit_golden(archs_, folder_.path(), scope_).ok());
    const auto before = text_of("ck/gfx1151.json");
    accept_golden(archs_, folder_.path(), scope_, "again", "2026-05-18");
    EXPECT_EQ(text_of("ck/gfx1151.json"), before);
}

TEST_F(Acceptance, RefusesAListingThatWasEdited) {
    accept_golden(archs_, folder_.path(), scope_, "first listing", "2026-05-17");
    auto text = text_of("ck/gfx1151.names");
    text.erase(text.rfind("fmha_"));
    std::ofstream(folder_.path() / "ck/gfx1151.names") << text;
    EXPECT_THROW(audit_golden(archs_, folder_.path(), scope_), InputError);
}

TEST_F(Acceptance, SeesAFactThatWasEdited) {
    accept_golden(archs_, folder_.path(), scope_, "first listing", "2026-05-17");
    auto text = text_of("ck/gfx1151.json");
    const auto digest = text.find("\"emission\": \"") + 13;
    text[digest] = text[digest] == '0' ? '1' : '0';
    std::ofstream(folder_.path() / "ck/gfx1151.json") << text;
    const auto report = audit_golden(archs_, folder_.path(), scope_);
    EXPECT_FALSE(report.ok());
    EXPECT_THAT(to_text(report), HasSubstr("in another order"));
}

TEST_F(Acceptance, SeesAGoldenFileWithoutArchitecture) {
    accept_golden(archs_, folder_.path(), scope_, "first listing", "2026-05-17");
    const auto without = [&] {
        std::vector<arch::ArchSet::File> files;
        for (const auto& file : arch::ArchSet::built_in_files())
            if (file.path != "gfx1151.json") files.push_back(file);
        return arch::ArchSet::parse(files, false);
    }();
    const auto report = audit_golden(without, folder_.path(), scope_);
    EXPECT_FALSE(report.ok());
    EXPECT_THAT(to_text(report), HasSubstr("no architecture file has this rule set"));
}

TEST(AuditReport, FailsWhenNothingWasCompared) {
    AuditReport report{"empty", {}, true};
    EXPECT_FALSE(report.ok());
    EXPECT_THAT(to_text(report), HasSubstr("nothing was compared"));
}

TEST(AuditReport, EscapesWhatItPutsOnAPage) {
    // A failure may hold the standard error of a generator, in whatever bytes.
    AuditReport report{"a <b> & c", {{"x", 1, "facts", {"<script>", "no \x1b[1m\xff here"}, {}, {}}}, true};
    const auto html = to_html_section(report);
    EXPECT_THAT(html, HasSubstr("a &lt;b&gt; &amp; c"));
    EXPECT_THAT(html, Not(HasSubstr("<script>")));
    EXPECT_THAT(html, HasSubstr("no ?[1m? here"));
}

} // namespace
} // namespace fmha::parity
