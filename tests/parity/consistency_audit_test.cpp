#include "dispatcher/system/process.hpp"
#include "parity/between_audit.hpp"
#include "parity/consistency_audit.hpp"

#include "dispatcher/types/error.hpp"
#include "tests/support/sentence_of.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>

namespace fmha::parity {
namespace {

using catalog::RuleSet;
using testing::HasSubstr;

/// The built-in architectures with one table changed.
arch::ArchSet with_patch(const std::string& table, const std::string& patch) {
    std::vector<std::string> texts;
    for (const auto& file : arch::ArchSet::built_in_files()) {
        texts.emplace_back(file.text);
        if (file.path == table)
            texts.back() =
                nlohmann::ordered_json::parse(file.text).patch(nlohmann::ordered_json::parse(patch)).dump();
    }
    std::vector<arch::ArchSet::File> files;
    std::size_t i = 0;
    for (const auto& file : arch::ArchSet::built_in_files()) files.push_back({file.path, texts[i++]});
    return arch::ArchSet::parse(files, false);
}

class Consistency : public testing::Test {
  protected:
    /// Audits the working list of Hopper, whose table is the shortest, with one problem of the case matrix.
    AuditReport audit(const arch::ArchSet& archs, std::int64_t hdim = 128) const {
        return audit_consistency(archs, {RuleSet::house}, {ArchName("sm_90")}, lattice_, expected_,
                                 [hdim](const ArchName& arch) {
                                     Problem problem;
                                     problem.arch = arch;
                                     problem.batch = problem.nhead_q = problem.nhead_k = 1;
                                     problem.seqlen_q = problem.seqlen_k = 100;
                                     problem.signature.hdim_q = problem.signature.hdim_v = hdim;
                                     return std::vector<NamedProblem>{{"a/case[x]@1", problem}};
                                 });
    }

    WitnessLattice lattice_ = read_lattice(FMHA_PARITY_DIR "/witnesses.json");
    /// Hopper has combine kernels of a head dimension without a split kernel.
    ExpectedFindings expected_{{{Lack::dead, {ArchName("sm_90")}, "fwd_splitkv_combine_*_h96x96_*", ""}}};
};

TEST_F(Consistency, OfTheWorkingListIsFine) {
    const auto report = audit(arch::ArchSet::built_in());
    EXPECT_TRUE(report.ok()) << to_text(report);
    EXPECT_GT(report.compared(), 4000);
}

TEST_F(Consistency, SeesTheSameTileTwice) {
    const auto report = audit(with_patch(
        "tables/house/hopper.json",
        R"([{"op": "copy", "from": "/families/fwd/tiles/0/tiles/0", "path": "/families/fwd/tiles/0/tiles/-"}])"));
    EXPECT_FALSE(report.ok());
    EXPECT_THAT(to_text(report), HasSubstr("the list has this name twice: fwd_sm_90_fp32_"));
}

TEST_F(Consistency, SeesATileThatNoProblemSelects) {
    // The same tile with the same paddings in a worse order of ranks: nothing is left for the second.
    const auto report = audit(with_patch("tables/house/hopper.json",
                                         R"([{"op": "add", "path": "/families/fwd/tiles/0/tiles/-",
             "value": {"block": [64, 64, 32, 32, 64, 32], "waves": 4, "warp": [16, 8, 8]}}])"));
    EXPECT_FALSE(report.ok());
    EXPECT_THAT(to_text(report), HasSubstr("dead, every problem of the lattice selects another kernel"));
}

TEST_F(Consistency, SeesARecordThatBreaksARule) {
    const auto report = audit(
        with_patch("tables/house/hopper.json",
                   R"([{"op": "replace", "path": "/families/fwd/tiles/0/tiles/0/block/0", "value": 72}])"));
    EXPECT_FALSE(report.ok());
    EXPECT_THAT(to_text(report), HasSubstr("breaks VR-07"));
}

TEST_F(Consistency, SeesAProblemWithoutKernel) {
    const auto report = audit(arch::ArchSet::built_in(), 512);
    EXPECT_FALSE(report.ok());
    EXPECT_THAT(to_text(report), HasSubstr("1 x a/case: no kernel takes it; first is a/case[x]@1"));
}

TEST_F(Consistency, SeesAnApiWithoutKernels) {
    expected_.findings.pop_back();
    const auto report = audit(
        with_patch("tables/house/hopper.json", R"([{"op": "remove", "path": "/families/batch_prefill"}])"));
    EXPECT_FALSE(report.ok());
    EXPECT_THAT(to_text(report),
                HasSubstr("x batch_prefill: no kernel of a data type that the hardware has"));
    EXPECT_THAT(to_text(report), testing::Not(HasSubstr("x fwd_pagedkv: ")));
}

TEST_F(Consistency, KnowsWhatIsExpectedAndMissesItWhenItIsGone) {
    expected_.findings.push_back(
        {Lack::hole, {ArchName("sm_90")}, "a/case*", "the head dimension is too large"});
    EXPECT_TRUE(audit(arch::ArchSet::built_in(), 512).ok());
    const auto gone = audit(arch::ArchSet::built_in(), 128);
    EXPECT_FALSE(gone.ok());
    EXPECT_THAT(to_text(gone), HasSubstr("expects holes a/case*, but there are none"));
}

/// The sentence with which a reader refuses a file of this text, without the file's name.
template <class Reader>
std::string refusal_of(Reader read, const std::string& text) {
    const system::TemporaryDirectory folder;
    const auto file = folder.path() / "read.json";
    std::ofstream(file) << text;
    std::string sentence = fmha::test::sentence_of<InputError>([&] { read(file); });
    if (sentence.starts_with(file.string())) sentence.erase(0, file.string().size());
    return sentence;
}

TEST(Witnesses, AreReadStrictly) {
    const auto refusal = [](const std::string& text) { return refusal_of(read_lattice, text); };
    const std::string most =
        R"("hdim_offsets": [0], "length_offsets": [], "lengths": [1], "num_splits": [2], "kv_pool_bytes": [1])";
    EXPECT_EQ(refusal("{" + most + R"(, "batch_heads": [[2, 2]]})"), "accepted");
    EXPECT_EQ(refusal("{" + most + "}"), R"(, "batch_heads": key "batch_heads" is missing)");
    EXPECT_THAT(refusal("{" + most + R"(, "batch_heads": [[2]]})"), HasSubstr(R"(, "batch_heads": )"));
    EXPECT_THAT(refusal("{" + most + R"(, "batch_heads": [], "heads": [1]})"),
                HasSubstr(R"(: unknown key "heads"; allowed: hdim_offsets, )"));
    EXPECT_THAT(refusal("[]"), HasSubstr("expected an object"));
}

TEST(ExpectedFindings, AreReadStrictly) {
    const auto refusal = [](const std::string& text) { return refusal_of(read_expected, text); };
    const std::string good = R"({"kind": "dead", "archs": ["sm_90"], "names": "*", "reason": "r"})";
    EXPECT_EQ(refusal("[" + good + "]"), "accepted");
    EXPECT_EQ(refusal("[" + good + R"(, {"kind": "odd", "archs": [], "names": "*", "reason": ""}])"),
              R"([1]: kind "odd" is not known; allowed: dead or hole)");
    EXPECT_EQ(
        refusal(R"([{"kind": "hole", "archs": ["an architecture of no name"], "names": "*", "reason": ""}])"),
        R"([0]: archs: "an architecture of no name" is no name of an architecture)");
    EXPECT_EQ(refusal(R"([{"kind": "hole", "archs": [], "names": "*", "reason": "", "why": ""}])"),
              R"([0]: unknown key "why"; allowed: kind, archs, names, reason)");
    EXPECT_THAT(refusal(good), HasSubstr("expected an array"));
}

TEST(NeutralKey, LeavesOutWhatOnlySomeRuleSetsRecord) {
    KernelConfig config;
    config.arch = "gfx950";
    config.signature.hdim_q = config.signature.hdim_v = 128;
    config.algorithm.tile = {128, 128, 32, 128, 32, 128, 0, 0, 0};
    config.algorithm.pipeline = Pipeline::qr_async;
    const auto key = neutral_key(config);
    EXPECT_EQ(key, "fwd_fp16_h128x128_t128x128x32x128x32x128_qr-async_batch_vr_pad0000_none_none-bias");
    config.arch = "gfx9";
    config.algorithm.block_per_cu = 2;
    config.algorithm.warp.m0 = 16;
    EXPECT_EQ(neutral_key(config), key);
    config.signature.has_lse = true;
    EXPECT_EQ(neutral_key(config), key + "_lse");
    EXPECT_EQ(level_of("fwd_fp16_h128x128_t128x128x32x128x32x128"), "the tile t128x128x32x128x32x128");
    EXPECT_EQ(level_of("fwd"), "the family fwd");
    EXPECT_EQ(level_of(key), "these paddings and features");
}

} // namespace
} // namespace fmha::parity
