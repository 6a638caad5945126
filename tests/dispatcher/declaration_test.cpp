#include "dispatcher/declarations/expand.hpp"
#include "dispatcher/declarations/nearest.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/field_json.hpp"
#include "dispatcher/types/rule.hpp"
#include "dispatcher/types/strict_json.hpp"
#include "kernels/catalog/catalog.hpp"
#include "tests/catalog/working_list.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

DECL_FMHA_KERNEL_SET(test_explicit,
                     .add(fmha::SignatureDecl().dtype("bf16").hdim(128).mask("causal").lse(true),
                          fmha::AlgorithmDecl().tile({128, 128, 32, 0, 32, 0}).wave({4, 1, 1, 4, 1, 1}),
                          "gfx950"))

DECL_FMHA_KERNEL_SET(test_wildcards,
                     .add(fmha::SignatureDecl().hdim(128).dtype(fmha::ANY).mask(fmha::ANY).lse(fmha::ANY),
                          fmha::AlgorithmDecl().tile(fmha::ANY).pipeline("qr_async"), "gfx942")
                         .tag("small"))

namespace fmha {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string message_of(const auto& action) {
    try {
        action();
    } catch (const DeclarationError& error) {
        return error.what();
    }
    return "accepted";
}

AlgorithmDecl plain() {
    return AlgorithmDecl().wave({4, 1, 1, 4, 1, 1}).tile({128, 128, 32, 128, 32, 128});
}

class Declarations : public ::testing::Test {
  protected:
    const arch::ArchSet archs_ = arch::ArchSet::built_in();
};

TEST_F(Declarations, MacroCollectsSetsByName) {
    std::vector<std::string> names;
    for (const KernelSet& set : declared_kernel_sets()) names.push_back(set.name());
    EXPECT_THAT(names, ElementsAre("test_explicit", "test_wildcards"));
    EXPECT_THAT(declared_kernel_set("test_wildcards").tags(), ElementsAre("small"));
    EXPECT_FALSE(declared_kernel_set("test_explicit").needs_expansion());
    EXPECT_TRUE(declared_kernel_set("test_wildcards").needs_expansion());
    EXPECT_THAT(message_of([] { declared_kernel_set("absent"); }),
                HasSubstr("test_explicit, test_wildcards"));
}

TEST_F(Declarations, AutoFillCompletesFromTheHeadDimensionsOnce) {
    const KernelConfig kernel = expand(declared_kernel_set("test_explicit"), archs_).kernels.at(0);
    EXPECT_EQ(kernel.algorithm.tile, (Tile{128, 128, 32, 128, 32, 128, 0, 0, 0}));
    EXPECT_EQ(kernel.algorithm.hdim_q_alignment, 128);
    EXPECT_EQ(kernel.signature.mask, MaskClass::causal);
    EXPECT_THAT(declared_kernel_set("test_explicit").to_string(), HasSubstr("algorithm.tile.n1=128"));
}

TEST_F(Declarations, WildcardsGiveEveryValidCombinationOnce) {
    const Expansion expansion = expand(declared_kernel_set("test_wildcards"), archs_);
    std::set<KernelConfig> unique(expansion.kernels.begin(), expansion.kernels.end());
    EXPECT_EQ(unique.size(), expansion.kernels.size());
    std::set<DataType> types;
    std::set<MaskClass> masks;
    for (const KernelConfig& kernel : expansion.kernels) {
        EXPECT_TRUE(is_valid(kernel, archs_.at("gfx942").hardware().limits)) << identifier(kernel);
        types.insert(kernel.signature.data_type);
        masks.insert(kernel.signature.mask);
    }
    EXPECT_TRUE(types.contains(DataType::fp16) && types.contains(DataType::bf16) &&
                types.contains(DataType::fp32));
    EXPECT_EQ(masks.size(), 3U);
    std::size_t skipped = 0;
    for (const auto& [rule, count] : expansion.skipped) skipped += count;
    EXPECT_EQ(expansion.combinations, expansion.kernels.size() + skipped);
    EXPECT_EQ(expand(declared_kernel_set("test_wildcards"), archs_).kernels, expansion.kernels);
}

TEST_F(Declarations, SkippedCombinationsAreCountedByRule) {
    KernelSet set("modes");
    AlgorithmDecl unpadded = plain();
    unpadded.padding(false, false, 1, 1);
    set.add(SignatureDecl().mode(ANY), unpadded, "gfx950");
    const Expansion expansion = expand(set, archs_);
    EXPECT_EQ(expansion.combinations, 2U);
    EXPECT_EQ(expansion.kernels.size(), 1U);
    EXPECT_EQ(expansion.skipped.at("VR-10"), 1U);
}

TEST_F(Declarations, ArchitectureWildcardTakesEveryFile) {
    KernelSet set("archs");
    AlgorithmDecl qr = plain();
    qr.pipeline("qr");
    set.add(SignatureDecl().dtype("fp16"), qr, ANY);
    std::set<std::string> names;
    for (const KernelConfig& kernel : expand(set, archs_).kernels) names.insert(kernel.arch.str());
    EXPECT_TRUE(names.contains("gfx942") && names.contains("gfx1100"));
}

TEST_F(Declarations, ErrorsInsteadOfSilence) {
    const auto expanding = [&](SignatureDecl signature, AlgorithmDecl algorithm, const char* arch) {
        return message_of([&] { expand(KernelSet("s").add(signature, algorithm, arch), archs_); });
    };
    EXPECT_EQ(expanding(SignatureDecl(), plain(), "gfx950"), "accepted");
    EXPECT_THAT(expanding(SignatureDecl().logits(true).bias("alibi"), plain(), "gfx950"), HasSubstr("VR-04"));
    EXPECT_THAT(expanding(SignatureDecl().hdim(100), plain(), "gfx950"), HasSubstr("VR-01"));
    EXPECT_THAT(expanding(SignatureDecl(), plain(), "gfx000"), HasSubstr("gfx950"));
    EXPECT_THAT(expanding(SignatureDecl(), plain(), ""), HasSubstr("no architecture"));
    EXPECT_THAT(expanding(SignatureDecl(), plain().constraint("on_tuesdays"), "gfx950"),
                HasSubstr("on_tuesdays"));
    EXPECT_THAT(expanding(SignatureDecl().hdim(512).mask(ANY).bias("alibi").logits(true), plain(), "gfx950"),
                HasSubstr("leaves no valid kernel"));
    EXPECT_THAT(message_of([] { SignatureDecl().dtype("fp8fp16"); }), HasSubstr("allowed: fp32"));
    EXPECT_THAT(message_of([] { SignatureDecl().mask("sideways"); }), HasSubstr("causal"));
    EXPECT_THAT(message_of([] { AlgorithmDecl().tile({1, 2, 3}); }), HasSubstr("got 3"));
    EXPECT_THAT(message_of([] { AlgorithmDecl().wave({1, 2}); }), HasSubstr("got 2"));
    EXPECT_THAT(message_of([] { AlgorithmDecl().padding(true, true, 4, 1); }),
                HasSubstr("none of 0, 1 and 8"));
    EXPECT_THAT(message_of([] { AlgorithmDecl().tile_m0(-1); }), HasSubstr("outside 0"));
    constexpr std::int64_t wraps = (std::int64_t{1} << 32) + 128; // around 32 bits to 128
    EXPECT_THAT(message_of([] { KernelSet("wide").add(SignatureDecl().hdim(wraps), plain(), "gfx950"); }),
                HasSubstr("hdim_v 4294967424 is outside 0 to 32767"));
}

TEST_F(Declarations, TokensOfEveryAxis) {
    EXPECT_EQ(SignatureDecl().mask("top_left").mask_axis.value(), MaskClass::causal);
    EXPECT_EQ(SignatureDecl().mask("0").mask_axis.value(), MaskClass::none);
    EXPECT_EQ(SignatureDecl().bias("e").bias_axis.value(), BiasType::elementwise);
    EXPECT_EQ(SignatureDecl().qscale("bs").fixed.qscale, QScale::blockscale);
    EXPECT_EQ(SignatureDecl().qscale("ph").fixed.qscale, QScale::per_token_head);
    EXPECT_EQ(SignatureDecl().rope("half").fixed.rope, Rope::half_rotated);
    EXPECT_EQ(SignatureDecl().vlayout("col").fixed.v_layout, VLayout::column);
    EXPECT_EQ(SignatureDecl().mode("group").mode_axis.value(), Mode::group);
}

TEST_F(Declarations, MergeKeepsOrderAndDuplicatesExpandOnce) {
    KernelSet left("left"), right("right");
    left.add(SignatureDecl(), plain(), "gfx950");
    right.add(SignatureDecl(), plain(), "gfx950").add(SignatureDecl().lse(true), plain(), "gfx950");
    left.merge(right);
    EXPECT_EQ(left.declarations().size(), 3U);
    EXPECT_EQ(expand(left, archs_).kernels.size(), 2U);
}

std::vector<std::string> fields_of(const Correction& correction) {
    std::vector<std::string> fields;
    for (const FieldChange& change : correction.changes) fields.push_back(change.field);
    return fields;
}

TEST_F(Declarations, AValidConfigurationIsItsOwnNearestOne) {
    const auto kernels = catalog::test::working_list("gfx950");
    for (std::size_t n = 0; n < kernels.size(); n += kernels.size() / 50) {
        const Correction same = nearest_valid(kernels[n], archs_);
        EXPECT_EQ(same.config, kernels[n]);
        EXPECT_TRUE(same.changes.empty() && same.broken.empty());
    }
}

TEST_F(Declarations, AMistakeIsCorrectedAndNothingElse) {
    struct Mistake {
        const char* what;
        void (*make)(KernelConfig&);
        const char* rule;
        std::vector<std::string> fields;
    };
    const std::vector<Mistake> mistakes{
        {"head dimension",
         [](KernelConfig& c) { c.signature.hdim_q = 100; },
         "VR-01: hdim_q 100",
         {"signature.hdim_q"}},
        {"type",
         [](KernelConfig& c) { c.signature.data_type = DataType::mxfp8; },
         "VR-02",
         {"signature.data_type"}},
        {"pipeline",
         [](KernelConfig& c) { c.algorithm.pipeline = Pipeline::qr_async_trload_v3; },
         "VR-03",
         {"algorithm.pipeline"}},
        {"soft-cap",
         [](KernelConfig& c) {
             c.signature.has_logits_soft_cap = true;
             c.signature.bias = BiasType::alibi;
         },
         "VR-04",
         {"signature.has_logits_soft_cap"}},
        {"tile",
         [](KernelConfig& c) { c.algorithm.tile.m0 = 100; },
         "VR-07: QK: tile extent m = 100",
         {"algorithm.tile"}},
        {"occupancy",
         [](KernelConfig& c) { c.algorithm.block_per_cu = 0; },
         "VR-09",
         {"algorithm.block_per_cu"}},
        {"layout",
         [](KernelConfig& c) { c.signature.rope = Rope::interleaved; },
         "VR-19",
         {"signature.rope"}},
    };
    KernelConfig good;
    for (const KernelConfig& kernel : catalog::test::working_list("gfx942")) {
        const Signature& s = kernel.signature;
        if (s.family == KernelFamily::fwd && s.data_type == DataType::bf16 && s.hdim_q == 128 &&
            s.hdim_v == 128 && kernel.algorithm.pipeline == Pipeline::qr_async && !s.has_logits_soft_cap) {
            good = kernel;
            break;
        }
    }
    ASSERT_EQ(good.signature.hdim_q, 128);
    const HardwareLimits& limits = archs_.at("gfx942").hardware().limits;
    for (const Mistake& mistake : mistakes) {
        KernelConfig wrong = good;
        mistake.make(wrong);
        ASSERT_FALSE(is_valid(wrong, limits)) << mistake.what;
        const Correction correction = nearest_valid(wrong, archs_);
        EXPECT_TRUE(is_valid(correction.config, limits)) << mistake.what;
        EXPECT_THAT(correction.broken, testing::Contains(HasSubstr(mistake.rule))) << mistake.what;
        EXPECT_EQ(fields_of(correction), mistake.fields) << mistake.what << "\n" << to_text(correction);
        // The changed field is told as it is, and everything else is as it was.
        KernelConfig rest = correction.config;
        for (const FieldChange& change : correction.changes) EXPECT_FALSE(change.why.empty());
        EXPECT_LE(differences(rest, wrong).size(), mistake.fields[0] == "algorithm.tile" ? 27U : 1U)
            << mistake.what;
    }
}

/// Each head dimension is valid, but not for every pipeline that a kernel of the list may have.
TEST_F(Declarations, ValidHeadDimensionsStayWhateverThePipelineOfTheList) {
    for (const std::int64_t extent : {24, 40, 56, 72, 104, 112, 120}) {
        KernelConfig wanted;
        wanted.arch = "gfx950";
        wanted.signature.hdim_q = wanted.signature.hdim_v = extent;
        for (const char* stated : {R"({"signature": {}})", R"({"algorithm": {"pipeline": "qr"}})"}) {
            const Correction correction =
                nearest_valid(wanted, archs_, stated_fields(parse_strict_json(stated, "a test")));
            EXPECT_EQ(correction.config.signature, wanted.signature) << stated << to_text(correction);
        }
    }
}

/// The default of a field is no open one where it is stated; a kernel of the list took its place.
TEST_F(Declarations, AStatedDefaultIsKept) {
    KernelConfig wanted;
    wanted.arch = "gfx950";
    wanted.signature.hdim_q = wanted.signature.hdim_v = 128;
    const StatedFields stated =
        stated_fields(parse_strict_json(R"({"arch": "gfx950", "signature": {"hdim_q": 128, "hdim_v": 128},
                                            "algorithm": {"pipeline": "qr", "pad": {"s": false}}})",
                                        "a test"));
    EXPECT_THAT(stated, ElementsAre("algorithm.pad.s", "algorithm.pipeline", "arch", "signature.hdim_q",
                                    "signature.hdim_v"));
    EXPECT_EQ(nearest_valid(wanted, archs_).config.algorithm.pipeline, Pipeline::qr_async_trload);
    const Correction correction = nearest_valid(wanted, archs_, stated);
    EXPECT_EQ(correction.config.algorithm.pipeline, Pipeline::qr) << to_text(correction);
    EXPECT_FALSE(correction.config.algorithm.pad.s) << to_text(correction);
}

/// Group mode needs padding, which comes later and was not there yet: the mode changed, for a reason that was not true.
TEST_F(Declarations, AFieldThatNeedsALaterOneIsPutBack) {
    KernelConfig wanted = catalog::test::working_list("gfx950").front();
    ASSERT_EQ(wanted.signature.mode, Mode::batch);
    wanted.signature.mode = Mode::group;
    wanted.algorithm.pad.s = wanted.algorithm.pad.sk = true;
    ASSERT_TRUE(is_valid(wanted, archs_.at("gfx950").hardware().limits));
    wanted.algorithm.block_per_cu = 0;
    const Correction correction = nearest_valid(wanted, archs_, stated_fields(fields_to_json(wanted)));
    EXPECT_THAT(fields_of(correction), ElementsAre("algorithm.block_per_cu")) << to_text(correction);
    wanted.algorithm.block_per_cu = -1;
    EXPECT_EQ(correction.config, wanted);
}

TEST_F(Declarations, AnOpenConfigurationIsFilledFromTheWorkingList) {
    KernelConfig open;
    open.arch = "gfx950";
    open.signature.data_type = DataType::bf16;
    open.signature.hdim_q = open.signature.hdim_v = 128;
    open.signature.has_lse = true;
    const Correction filled = nearest_valid(open, archs_);
    const auto listed = catalog::test::working_list("gfx950");
    EXPECT_TRUE(std::ranges::any_of(listed, [&](const KernelConfig& kernel) {
        return kernel.algorithm == filled.config.algorithm && kernel.signature.hdim_q == 128 &&
               kernel.signature.data_type == DataType::bf16;
    }));
    EXPECT_TRUE(is_valid(filled.config, archs_.at("gfx950").hardware().limits));
    EXPECT_EQ(filled.config.signature, open.signature);
    EXPECT_THAT(to_text(filled), HasSubstr("it was left open"));
    EXPECT_THAT(to_json(filled).dump(), HasSubstr("\"valid\":false"));

    open.arch = "gfx1";
    EXPECT_THROW(nearest_valid(open, archs_), InputError);
    open.arch = "gfx1100";
    open.signature.family = KernelFamily::batch_prefill;
    EXPECT_THAT([&] { nearest_valid(open, archs_); }, testing::ThrowsMessage<InputError>(HasSubstr(
                                                          "gfx1100 has no kernel of family batch_prefill")));
}

} // namespace
} // namespace fmha
