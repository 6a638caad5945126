// Problems that are accepted, their keys, and their texts.

#include "dispatcher/types/problem.hpp"

#include "tests/dispatcher/kernels.hpp"

#include <gmock/gmock.h>

#include <limits>

namespace fmha {
namespace {

using testing::builder_for;
using ::testing::HasSubstr;

TEST(Problem, AcceptsTheEdgesOfEveryRule) {
    EXPECT_NO_THROW(builder_for(ApiFamily::fwd_splitkv).num_splits(128).build());
    EXPECT_NO_THROW(builder_for(ApiFamily::fwd_splitkv).num_splits(0).build());
    EXPECT_NO_THROW(
        builder_for(ApiFamily::fwd_appendkv).rope_type(Rope::interleaved).rotary_dim(128).build());
    EXPECT_NO_THROW(
        builder_for(ApiFamily::batch_prefill).kv_cache(KvLayout::linear, KvLookup::vllm_2d, 1).build());
    EXPECT_NO_THROW(builder_for(ApiFamily::fwd).mask_type(MaskType::window_generic).window(2, -2).build());
    EXPECT_NO_THROW(
        builder_for(ApiFamily::bwd).bias_type(BiasType::elementwise).bwd_flags(true, false, true).build());
    EXPECT_NO_THROW(builder_for(ApiFamily::fwd).dims(128, 128, 2, 0, 0).build());
}

TEST(Problem, SizesBeyond32BitsAreCountedIn64) {
    const Problem long_keys =
        builder_for(ApiFamily::fwd).dims(128, 128, 32, 8192, 8192).nheads(64, 64).build();
    // 2 * 32 * 64 * 8192 * 8192 * 256, far beyond 2^31 and 2^32.
    EXPECT_EQ(long_keys.num_ops(), std::int64_t{2} * 32 * 64 * 8192 * 8192 * 256);
    EXPECT_NO_THROW(builder_for(ApiFamily::fwd).dims(128, 128, 1, std::int64_t{1} << 31, 16).build());
}

TEST(Problem, NumberOfOperationsClampsAndSaturates) {
    Problem problem = builder_for(ApiFamily::fwd).dims(64, 32, 2, 10, 20).nheads(4, 2).build();
    EXPECT_EQ(problem.num_ops(), 2 * 2 * 4 * 10 * 20 * (64 + 32));
    problem.api_family = ApiFamily::bwd;
    EXPECT_EQ(problem.num_ops(), 2 * 2 * 4 * 10 * 20 * (3 * 64 + 2 * 32));
    problem.batch = -2;
    EXPECT_EQ(problem.num_ops(), 0);
    problem.batch = 2;
    problem.seqlen_q = 0;
    EXPECT_EQ(problem.num_ops(), 0);
    problem.seqlen_q = problem.seqlen_k = std::int64_t{1} << 40;
    EXPECT_EQ(problem.num_ops(), std::numeric_limits<std::int64_t>::max());
    problem.signature.hdim_q = std::numeric_limits<std::int64_t>::max();
    EXPECT_EQ(problem.num_ops(), std::numeric_limits<std::int64_t>::max());
}

TEST(ProblemBuilder, DerivesWhatFollows) {
    const Problem causal =
        builder_for(ApiFamily::fwd).mask_type(MaskType::bottom_right).window(-1, 0).build();
    EXPECT_EQ(causal.signature.mask, MaskClass::causal);
    const Problem window = builder_for(ApiFamily::fwd).mask_type(MaskType::top_left).window(7, 0).build();
    EXPECT_EQ(window.signature.mask, MaskClass::generic);
    EXPECT_TRUE(builder_for(ApiFamily::fwd).sink_size(4).build().signature.has_sink);
    EXPECT_FALSE(builder_for(ApiFamily::bwd).lse(true).build().signature.has_lse);
    EXPECT_TRUE(builder_for(ApiFamily::fwd_pagedkv).build().presence.block_table);
    EXPECT_EQ(builder_for(ApiFamily::bwd).build().signature.family, KernelFamily::bwd_dq_dk_dv);
}

TEST(Problem, CanonicalKeyHasNoSequenceLengthsButEverythingElse) {
    const Problem one = builder_for(ApiFamily::fwd).build();
    Problem other = one;
    other.seqlen_q += 64;
    other.seqlen_k += 64;
    EXPECT_EQ(one.canonical_key(), other.canonical_key());
    other = one;
    other.presence.seqlen_k = true;
    EXPECT_NE(one.canonical_key(), other.canonical_key());
    other = one;
    other.tensor_alignment = 8;
    EXPECT_NE(one.canonical_key(), other.canonical_key());
    other = one;
    other.tensors_mappable = false;
    EXPECT_NE(one.canonical_key(), other.canonical_key());
    other = one;
    other.reduce_dk_dv = true;
    EXPECT_NE(one.canonical_key(), other.canonical_key());
    other = one;
    other.arch = "";
    EXPECT_NE(one.canonical_key(), other.canonical_key());
    each_leaf(other.signature, [&](const std::string& path, auto& leaf) {
        auto kept = leaf;
        using Leaf = std::remove_cvref_t<decltype(leaf)>;
        if constexpr (std::same_as<Leaf, bool>)
            leaf = !leaf;
        else
            leaf = static_cast<Leaf>(static_cast<std::int64_t>(leaf) + 1);
        Problem changed = one;
        changed.signature = other.signature;
        EXPECT_NE(one.canonical_key(), changed.canonical_key()) << path;
        leaf = kept;
    });
    EXPECT_THAT(one.canonical_key(), HasSubstr("\x1F"));
}

TEST(Problem, PrintsOneLine) {
    const Problem problem = builder_for(ApiFamily::fwd)
                                .mask_type(MaskType::bottom_right)
                                .window(100, 0)
                                .sink_size(4)
                                .lse(true)
                                .build();
    EXPECT_EQ(problem.to_string(),
              "fwd fp16 batch b2 h8/2 sq256 sk512 d128/128 arch=gfx950 mask=bottom_right(100,0) sink=4 lse");
}

} // namespace
} // namespace fmha
