#include "dispatcher/dispatcher.hpp"
#include "dispatcher/registry/catalogue.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/upstream/ck_policy.hpp"
#include "tests/dispatcher/kernels.hpp"

#include <gmock/gmock.h>

/// Choices that follow by hand from the description of upstream's generated chains.
namespace fmha::upstream {
namespace {

using ::testing::HasSubstr;

struct Chosen {
    std::string main, combine, dot, convert;
};

class UpstreamChain : public ::testing::Test {
  protected:
    static Problem forward(const char* arch, std::int64_t dims, std::int64_t rows) {
        Problem p;
        p.arch = arch;
        p.data_type = DataType::fp16;
        p.batch = 2;
        p.nhead_q = 8;
        p.hdim_q = p.hdim_v = dims;
        p.seqlen_q = p.max_seqlen_q = rows;
        p.seqlen_k = 1024;
        p.num_cus = 256;
        return p;
    }
    Chosen choose(const Problem& p) {
        const Selection selection = chains_.of(p.arch.view()).select(p);
        const auto name = [](const std::optional<KernelConfig>& kernel) {
            return kernel ? catalog::name_of(catalog::RuleSet::ck, *kernel) : std::string("none");
        };
        return {name(selection.main), name(selection.combine), name(selection.dot_do_o),
                name(selection.convert_dq)};
    }
    Chains chains_{arch::ArchSet::built_in()};
};

TEST_F(UpstreamChain, Gfx950ShortQueriesTakeSmallTransposedTiles) {
    EXPECT_THAT(choose(forward("gfx950", 128, 16)).main, HasSubstr("_b16x32x64x128x32x128_"));
    EXPECT_THAT(choose(forward("gfx950", 128, 17)).main, HasSubstr("_b32x32x128x128x32x128_"));
    EXPECT_THAT(choose(forward("gfx950", 64, 32)).main, HasSubstr("_b32x32x64x64x32x64_"));
    EXPECT_THAT(choose(forward("gfx950", 64, 33)).main, HasSubstr("_qr_async_vr_"));
}

TEST_F(UpstreamChain, Gfx950BlocksAgainstComputeUnits) {
    // 16 heads: 1024 rows are 256 blocks of 64, exactly as many as there are units.
    EXPECT_THAT(choose(forward("gfx950", 128, 1024)).main, HasSubstr("_b64x128x32x128x32x128_"));
    EXPECT_THAT(choose(forward("gfx950", 128, 1025)).main, HasSubstr("_b128x64x32x128x16x128_"));
    Problem biased = forward("gfx950", 128, 1025);
    biased.bias_type = BiasType::elementwise;
    EXPECT_THAT(choose(biased).main, HasSubstr("_qr_vr_"));
}

TEST_F(UpstreamChain, AsyncKernelsDivideKeysByTheTail) {
    Problem p = forward("gfx942", 256, 1024);
    p.hdim_q = p.hdim_v = 192;
    EXPECT_THAT(choose(p).main, HasSubstr("_qr_async_vr_psddv_"));
    p.seqlen_k = 1000;
    EXPECT_THAT(choose(p).main, HasSubstr("_qr_async_vr_psskddv_"));
    p.seqlen_k = 1024;
    p.cu_seqlen_k_ptr = true;
    EXPECT_THAT(choose(p).main, HasSubstr("_qr_async_vr_psskddv_"));
}

TEST_F(UpstreamChain, FirstBucketThatIsLargeEnoughIsFinal) {
    // (72, 96) falls into (80, 96), whose kernels with bias and without padding need multiples of 96.
    Problem p = forward("gfx942", 72, 128);
    p.hdim_v = 96;
    p.bias_type = BiasType::elementwise;
    EXPECT_THAT(choose(p).main, HasSubstr("_d80_"));
    EXPECT_THAT(choose(p).main, HasSubstr("_psskddv_"));
    p.hdim_q = 320;
    EXPECT_EQ(choose(p).main, "none");
}

TEST_F(UpstreamChain, Gfx11LongQueriesTakeTheLargerTile) {
    EXPECT_THAT(choose(forward("gfx1100", 64, 4095)).main, HasSubstr("_b64x64x32x64x32x64_"));
    EXPECT_THAT(choose(forward("gfx1100", 64, 4096)).main, HasSubstr("_b128x64x32x64x32x64_"));
    Problem odd = forward("gfx1100", 128, 128);
    odd.hdim_q = 120;
    EXPECT_THAT(choose(odd).main, HasSubstr("_b64x32x32x128x32x128_"));
    EXPECT_THAT(choose(odd).main, HasSubstr("_qr_hpad_"));
}

TEST_F(UpstreamChain, V3IsTriedFirstForMoreThanOneRow) {
    Problem p = forward("gfx950", 128, 1024);
    p.data_type = DataType::fp8bf16;
    p.qscale_type = QScale::pertensor;
    EXPECT_THAT(choose(p).main, HasSubstr("_qr_async_trload_v3_"));
    p.max_seqlen_q = p.seqlen_q = 1;
    EXPECT_THAT(choose(p).main, HasSubstr("_qr_async_vr_"));
    p.max_seqlen_q = p.seqlen_q = 1024;
    p.mask_type = MaskType::window_generic; // v3 serves the two causal kinds, not windows
    EXPECT_THAT(choose(p).main, ::testing::Not(HasSubstr("_v3_")));
}

TEST_F(UpstreamChain, Fp8SplitWithLseHasNoCombineKernel) {
    Problem p = forward("gfx942", 128, 128);
    p.family = ApiFamily::fwd_splitkv;
    p.data_type = DataType::fp8;
    p.do_fp8_static_quant = true;
    p.has_lse = true;
    EXPECT_THAT(choose(p).main, HasSubstr("fmha_fwd_splitkv_d128_fp8_batch"));
    EXPECT_EQ(choose(p).combine, "none");
    EXPECT_TRUE(selection_to_json(p, chains_.of("gfx942").select(p))["combine"].is_null());
    p.has_lse = false;
    EXPECT_EQ(choose(p).combine,
              "fmha_fwd_splitkv_combine_d128_fp8_batch_b32_unused_npad_nlse_squant_gfx9.cpp");
}

TEST_F(UpstreamChain, PrefillExistsOnGfx9Only) {
    Problem p = forward("gfx942", 128, 128);
    p.family = ApiFamily::batch_prefill;
    p.is_group_mode = true;
    p.kv_memory_layout = KvLayout::linear;
    p.kv_lookup_table = KvLookup::vllm_2d;
    p.page_size = 16;
    p.kv_load_mode = LoadMode::gload;
    EXPECT_THAT(choose(p).main, HasSubstr("_ps16_gload_b64x128x64x128x64x128_"));
    p.num_cus = 20; // 16 blocks are not fewer than 0.8 of 20
    EXPECT_THAT(choose(p).main, HasSubstr("_b128x128x32x128x32x128_"));
    p.arch = "gfx1100";
    EXPECT_EQ(choose(p).main, "none");
}

TEST_F(UpstreamChain, BackwardOnGfx950) {
    Problem p = forward("gfx950", 128, 16);
    p.family = ApiFamily::bwd;
    Chosen chosen = choose(p);
    EXPECT_THAT(chosen.main, HasSubstr("_b16x16x128x16x128x16x16x128x128_"));
    EXPECT_EQ(chosen.convert, "none");
    EXPECT_THAT(chosen.dot, HasSubstr("_ps_gfx950.cpp"));
    p.seqlen_q = 64;
    p.seqlen_k = 256;
    EXPECT_THAT(choose(p).main, HasSubstr("_b32x128x128x32x128x32x32x128x128_"));
    EXPECT_THAT(choose(p).dot, HasSubstr("_npad_gfx950.cpp"));
    p.seqlen_k = 257;
    EXPECT_THAT(choose(p).main, HasSubstr("_b16x192x128x16x128x16x32x128x128_"));
    // The buckets stand in the order 64, 128, 32, 96, 256.
    p.hdim_q = p.hdim_v = 96;
    EXPECT_THAT(choose(p).main, HasSubstr("fmha_bwd_d128_"));
    p.hdim_q = p.hdim_v = 32;
    EXPECT_THAT(choose(p).main, HasSubstr("fmha_bwd_d64_"));
}

TEST(UpstreamProblem, ReadsStrictlyAndInventsNothing) {
    const auto read = [](const std::string& text) { return problem_from_json(Json::parse(text), "x"); };
    const std::string good =
        R"({"family":"appendkv","problem":{"arch":"gfx942","data_type":"fp16","hdim_q":128,
        "hdim_v":128,"seqlen_q":64,"is_v_rowmajor":true,"rope_type":"none","block_table_ptr":null}})";
    EXPECT_EQ(read(good).hdim_q, 128);
    const auto message = [&](std::string text, const std::string& from, const std::string& to) {
        text.replace(text.find(from), from.size(), to);
        try {
            read(text);
        } catch (const InputError& error) {
            return std::string(error.what());
        }
        return std::string("accepted");
    };
    EXPECT_THAT(message(good, "\"rope_type\":\"none\",", ""), HasSubstr("x.problem.rope_type: missing"));
    EXPECT_THAT(message(good, "\"none\"", "\"twice\""),
                HasSubstr("allowed: none, interleaved, half_rotated"));
    EXPECT_THAT(message(good, "\"hdim_q\":128", "\"hdim_q\":\"128\""),
                HasSubstr("expected a 64-bit integer"));
    EXPECT_THAT(message(good, "\"hdim_q\"", "\"hdimq\""), HasSubstr("hdim_q: missing"));
    EXPECT_THAT(message(good, "\"arch\"", "\"speed\":1,\"arch\""),
                HasSubstr("unknown key \"speed\"; allowed: batch_stride_k, "));
    EXPECT_EQ(message(good, "gfx942", "a name beyond all"),
              "x.problem.arch: expected the name of an architecture, got \"a name beyond all\"");
    EXPECT_THAT(message(good, "appendkv", "append"), HasSubstr("x.family"));
}

TEST(CkPolicy, PlansOverARegistryOfTheRuleSet) {
    const arch::ArchSet archs = arch::ArchSet::built_in();
    const std::array names{ArchName("gfx942")};
    const auto registry = catalogue_registry(archs, catalog::RuleSet::ck, names);
    Dispatcher dispatcher(*registry, devices_of(archs));
    dispatcher.set_policy(std::make_shared<const CkPolicy>(archs, names));
    const ExecutionPlan plan =
        dispatcher.plan(fmha::testing::builder_for(ApiFamily::bwd).gfx_arch("gfx942").build());
    ASSERT_EQ(plan.stages().size(), 3U);
    EXPECT_EQ(registry->name_of(*plan.stages()[0].kernel),
              "fmha_bwd_dot_do_o_d128_fp16_b64_batch_o2_npad_gfx9.cpp");
    EXPECT_THAT(registry->name_of(*plan.stages()[1].kernel), HasSubstr("_npad_nbias_ndbias_nmask_"));
    EXPECT_EQ(registry->name_of(*plan.stages()[2].kernel),
              "fmha_bwd_convert_dq_d128_fp16_b64_batch_o2_npad_ndeterministic_gfx9.cpp");
}

} // namespace
} // namespace fmha::upstream
