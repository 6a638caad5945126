#include "dispatcher/declarations/expand.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/rule.hpp"

#include <gmock/gmock.h>

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

} // namespace
} // namespace fmha
