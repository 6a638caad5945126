#include "dispatcher/selection/match.hpp"

#include "dispatcher/types/error.hpp"
#include "dispatcher/types/family_traits.hpp"
#include "dispatcher/types/problem_use.hpp"
#include "tests/dispatcher/kernels.hpp"

#include <gmock/gmock.h>

#include <limits>
#include <set>

namespace fmha {
namespace {

using testing::builder_for;
using testing::kernel_of;

ApiFamily api_of(KernelFamily family) {
    using enum KernelFamily;
    switch (family) {
    case fwd:
        return ApiFamily::fwd;
    case fwd_pagedkv:
        return ApiFamily::fwd_pagedkv;
    case fwd_splitkv:
    case fwd_splitkv_combine:
        return ApiFamily::fwd_splitkv;
    case fwd_appendkv:
        return ApiFamily::fwd_appendkv;
    case batch_prefill:
        return ApiFamily::batch_prefill;
    default:
        return ApiFamily::bwd;
    }
}

Problem problem_for(KernelFamily family) {
    Problem problem = builder_for(api_of(family)).build();
    problem.signature.family = family;
    return problem;
}

/// One way in which a kernel does not take a problem, and the sentence a person reads.
struct Refused {
    Reason reason;
    KernelFamily family;
    std::function<void(Problem&, KernelConfig&)> spoil;
    std::string sentence;
};

std::vector<Refused> refusals() {
    using enum KernelFamily;
    using P = Problem;
    using K = KernelConfig;
    return {
        {Reason::wrong_arch, fwd, [](P& p, K&) { p.arch = "gfx942"; },
         "arch is gfx942, this kernel has gfx950"},
        {Reason::wrong_family, fwd, [](P&, K& k) { k = kernel_of(fwd_splitkv); },
         "family is fwd, this kernel has fwd_splitkv"},
        {Reason::data_type_differs, fwd, [](P& p, K&) { p.signature.data_type = DataType::bf16; },
         "data_type is bf16, this kernel has fp16"},
        {Reason::mode_differs, fwd, [](P& p, K&) { p.signature.mode = Mode::group; },
         "mode is group, this kernel has batch"},
        {Reason::v_layout_differs, fwd, [](P& p, K&) { p.signature.v_layout = VLayout::column; },
         "v_layout is column, this kernel has row"},
        {Reason::soft_cap_differs, fwd, [](P& p, K&) { p.signature.has_logits_soft_cap = true; },
         "has_logits_soft_cap is true, this kernel has false"},
        {Reason::bias_differs, fwd, [](P& p, K&) { p.signature.bias = BiasType::alibi; },
         "bias is alibi, this kernel has none"},
        {Reason::lse_differs, fwd, [](P& p, K&) { p.signature.has_lse = true; },
         "has_lse is true, this kernel has false"},
        {Reason::dropout_differs, bwd_dq_dk_dv, [](P& p, K&) { p.signature.has_dropout = true; },
         "has_dropout is true, this kernel has false"},
        {Reason::qscale_differs, fwd, [](P&, K& k) { k.signature.qscale = QScale::pertensor; },
         "qscale is none, this kernel has pertensor"},
        {Reason::rope_differs, fwd_appendkv, [](P& p, K&) { p.signature.rope = Rope::interleaved; },
         "rope is interleaved, this kernel has none"},
        {Reason::paging_differs, fwd_splitkv, [](P& p, K&) { p.signature.use_paged_kv = true; },
         "use_paged_kv is true, this kernel has false"},
        {Reason::static_quant_differs, fwd_splitkv_combine,
         [](P& p, K&) { p.signature.do_fp8_static_quant = true; },
         "do_fp8_static_quant is true, this kernel has false"},
        {Reason::dbias_differs, bwd_dq_dk_dv, [](P& p, K&) { p.signature.has_dbias = true; },
         "has_dbias is true, this kernel has false"},
        {Reason::deterministic_differs, bwd_convert_dq, [](P& p, K&) { p.signature.is_deterministic = true; },
         "is_deterministic is true, this kernel has false"},
        {Reason::store_randval_differs, bwd_dq_dk_dv, [](P& p, K&) { p.signature.is_store_randval = true; },
         "is_store_randval is true, this kernel has false"},
        {Reason::kv_layout_differs, batch_prefill,
         [](P& p, K&) { p.signature.kv_layout = KvLayout::vectorized; },
         "kv_layout is vectorized, this kernel has linear"},
        {Reason::kv_lookup_differs, batch_prefill,
         [](P& p, K&) { p.signature.kv_lookup = KvLookup::vllm_2d; },
         "kv_lookup is vllm_2d, this kernel has sglang_1d"},
        {Reason::page_size_differs, batch_prefill, [](P& p, K&) { p.signature.page_size = 1; },
         "page_size is 1, this kernel has 16"},
        {Reason::page_size_differs, fwd_pagedkv, [](P&, K& k) { k.signature.page_size = 256; },
         "page_size is 128, this kernel has 256"},
        {Reason::mask_not_representable, fwd, [](P& p, K&) { p.signature.mask = MaskClass::causal; },
         "mask is causal, this kernel has none"},
        {Reason::mask_not_representable, fwd, [](P&, K& k) { k.signature.mask = MaskClass::generic; },
         "mask is none, this kernel has generic"},
        {Reason::mask_not_representable, fwd,
         [](P& p, K& k) {
             p.signature.mask = MaskClass::generic;
             k.signature.mask = MaskClass::causal;
         },
         "mask is generic, this kernel has causal"},
        {Reason::no_sink_tokens, fwd, [](P& p, K&) { p.signature.has_sink = true; },
         "has_sink is true, this kernel has false"},
        {Reason::no_sink_logit, bwd_dot_do_o, [](P& p, K&) { p.signature.has_sink_logit = true; },
         "has_sink_logit is true, this kernel has false"},
        {Reason::no_skip_min_seqlen_q, fwd, [](P& p, K&) { p.signature.skip_min_seqlen_q = true; },
         "skip_min_seqlen_q is true, this kernel has false"},
        {Reason::no_randval_store, fwd,
         [](P& p, K& k) {
             p.signature.has_dropout = p.signature.is_store_randval = true;
             k.signature.has_dropout = true;
         },
         "is_store_randval is true, this kernel has false"},
        {Reason::no_reduced_dk_dv, bwd_dq_dk_dv,
         [](P& p, K& k) {
             p.reduce_dk_dv = true;
             k.algorithm.max_seq_len_q = 1 << 20;
         },
         "reduce_dk_dv is true, this kernel has false"},
        {Reason::hdim_q_too_large, fwd, [](P& p, K&) { p.signature.hdim_q = 136; },
         "hdim_q is 136, this kernel takes at most 128"},
        {Reason::hdim_v_too_large, fwd, [](P& p, K&) { p.signature.hdim_v = 256; },
         "hdim_v is 256, this kernel takes at most 128"},
        {Reason::max_seqlen_q_missing, batch_prefill, [](P& p, K&) { p.max_seqlen_q = 0; },
         "group mode needs max_seqlen_q"},
        {Reason::seqlen_q_not_padded, fwd,
         [](P& p, K& k) {
             p.seqlen_q = 100;
             k.algorithm.pad.s = false;
         },
         "seqlen_q is 100, this kernel has no query tail: multiple of 128 required"},
        {Reason::seqlen_q_not_padded, fwd,
         [](P& p, K& k) {
             p.presence.seqlen_q = true;
             k.algorithm.pad.s = false;
         },
         "query lengths vary and this kernel has no query tail (pad_s off)"},
        {Reason::seqlen_k_not_padded, fwd,
         [](P& p, K& k) {
             p.seqlen_k = 1000;
             k.algorithm.pad.sk = false;
         },
         "seqlen_k is 1000, this kernel has no key tail: positive multiple of 128 required"},
        {Reason::seqlen_k_not_padded, fwd,
         [](P& p, K& k) {
             p.seqlen_k = 0;
             k.algorithm.pad.sk = false;
         },
         "seqlen_k is 0, this kernel has no key tail: positive multiple of 128 required"},
        {Reason::seqlen_k_not_padded, fwd_splitkv,
         [](P& p, K& k) {
             p.presence.seqlen_k = true;
             k.algorithm.pad.sk = false;
         },
         "key lengths vary and this kernel has no key tail (pad_sk off)"},
        {Reason::hdim_q_not_padded, fwd,
         [](P& p, K& k) {
             p.signature.hdim_q = 72;
             k.algorithm.pad.d = 0;
         },
         "hdim_q is 72, this kernel needs a multiple of 128"},
        {Reason::hdim_v_not_padded, fwd,
         [](P& p, K& k) {
             p.signature.hdim_v = 72;
             k.algorithm.pad.dv = 0;
             k.algorithm.hdim_v_alignment = 64;
         },
         "hdim_v is 72, this kernel needs a multiple of 64"},
        {Reason::tensors_not_aligned, fwd,
         [](P& p, K& k) {
             p.tensor_alignment = 8;
             k.algorithm.pipeline = Pipeline::ws;
         },
         "addresses or strides of Q, K and V are multiples of 8 bytes only, this kernel copies them by "
         "tensor maps: multiples of 16 required"},
        {Reason::tensors_not_aligned, fwd_pagedkv,
         [](P& p, K& k) {
             p.tensor_alignment = 2;
             k.algorithm.pipeline = Pipeline::ws;
         },
         "addresses or strides of Q, K and V are multiples of 2 bytes only, this kernel copies them by "
         "tensor maps: multiples of 16 required"},
        {Reason::tensors_not_mappable, fwd,
         [](P& p, K& k) {
             p.tensors_mappable = false;
             k.algorithm.pipeline = Pipeline::ws;
         },
         "tensor maps, by which this kernel copies Q, K and V, cannot have their strides or extents: rows a "
         "positive stride, others 0 or more, all below 2^40 bytes"},
        {Reason::seqlen_q_too_long, bwd_dq_dk_dv, [](P&, K& k) { k.algorithm.max_seq_len_q = 32; },
         "seqlen_q is 256, this kernel takes at most 32"},
        {Reason::too_many_splits, fwd_splitkv_combine,
         [](P& p, K& k) {
             p.num_splits = 9;
             k.algorithm.max_splits_log2 = 3;
         },
         "num_splits is 9, this kernel takes at most 8"},
        {Reason::pool_over_32_bits, batch_prefill, [](P& p, K&) { p.kv_pool_bytes = std::int64_t{1} << 31; },
         "kv_pool_bytes is 2147483648, this kernel takes at most 2147483647"},
        {Reason::compute_units_unknown, fwd, [](P&, K& k) { k.algorithm.constraint = "blocks64_le_cus"; },
         "whether batch * nhead_q * ceil(max_seqlen_q / 64) <= compute units cannot be known without the "
         "number of "
         "compute units"},
        {Reason::constraint_fails, fwd,
         [](P& p, K& k) {
             p.compute_units = 63;
             k.algorithm.constraint = "blocks64_le_cus";
         },
         "reserved for problems with batch * nhead_q * ceil(max_seqlen_q / 64) <= compute "
         "units"},
    };
}

TEST(Match, EveryFamilyHasAProblemThatItsKernelTakes) {
    for (const auto& [family, name] : EnumTable<KernelFamily>::names)
        EXPECT_TRUE(match(problem_for(family), kernel_of(family))) << name;
}

TEST(Match, EveryReasonIsProducedAndTold) {
    std::set<Reason> produced{Reason::accepted, Reason::hdim_of_other_stage};
    for (const Refused& row : refusals()) {
        Problem problem = problem_for(row.family);
        KernelConfig kernel = kernel_of(row.family);
        ASSERT_TRUE(match(problem, kernel));
        row.spoil(problem, kernel);
        const Verdict verdict = match(make_query(problem, row.family), kernel);
        EXPECT_EQ(to_string(verdict.reason), to_string(row.reason)) << row.sentence;
        const Refusal told = describe(verdict, problem, kernel);
        EXPECT_EQ(told.sentence, row.sentence);
        EXPECT_FALSE(told.fix.empty());
        EXPECT_FALSE(told.field.empty());
        produced.insert(verdict.reason);
    }
    for (const auto& [reason, name] : EnumTable<Reason>::names)
        EXPECT_TRUE(produced.contains(reason)) << name;
}

TEST(Match, StagesAgreeWithTheMainKernelsHeadDimension) {
    const Problem problem = problem_for(KernelFamily::bwd_dot_do_o);
    StageQuery query = make_query(problem, KernelFamily::bwd_dot_do_o);
    follow_main(query, kernel_of(KernelFamily::bwd_dq_dk_dv, 256));
    const KernelConfig kernel = kernel_of(KernelFamily::bwd_dot_do_o, 128);
    const Verdict verdict = match(query, kernel);
    EXPECT_EQ(verdict, (Verdict{Reason::hdim_of_other_stage, 256, 128}));
    EXPECT_EQ(describe(verdict, problem, kernel).sentence,
              "the main stage has head dimension 256, this kernel has 128");
}

/// Flipping any field of a matching forward problem's signature must stop the match, unless the specification
/// says that the kernel may have more or that the family has no such field.
TEST(Match, FlippingAnySignatureFieldStopsTheMatch) {
    const std::set<std::string> prefill_only{"kv_layout", "kv_lookup", "page_size"};
    const Problem problem = problem_for(KernelFamily::fwd);
    const KernelConfig kernel = kernel_of(KernelFamily::fwd);
    Problem changed = problem;
    each_leaf(changed.signature, [&](const std::string& path, auto& leaf) {
        if (path == "family") return;
        const auto kept = leaf;
        using Leaf = std::remove_cvref_t<decltype(leaf)>;
        if constexpr (std::same_as<Leaf, bool>)
            leaf = !leaf;
        else
            leaf = static_cast<Leaf>(static_cast<std::int64_t>(leaf) + 1);
        EXPECT_EQ(static_cast<bool>(match(changed, kernel)), prefill_only.contains(path)) << path;
        leaf = kept;
    });
    Problem prefill = problem_for(KernelFamily::batch_prefill);
    for (const auto& spoil : std::vector<std::function<void(Signature&)>>{
             [](Signature& s) { s.kv_layout = KvLayout::vectorized; },
             [](Signature& s) { s.kv_lookup = KvLookup::vllm_2d; }, [](Signature& s) { s.page_size = 32; }}) {
        Problem other = prefill;
        spoil(other.signature);
        EXPECT_FALSE(match(other, kernel_of(KernelFamily::batch_prefill)));
    }
}

/// What the table calls unused stops no kernel, and changes nothing that kernels are compared by.
TEST(Match, FieldsWithoutUseHaveNoSay) {
    std::set<std::string_view> rows;
    for (const FieldUse& use : field_uses()) EXPECT_TRUE(rows.insert(use.path).second) << use.path;
    std::size_t unused = 0;
    for (const ApiTraits& api : api_table)
        for (const KernelFamily stage : api.stages) {
            Problem problem = problem_for(stage);
            const KernelConfig kernel = kernel_of(stage);
            const StageQuery before = make_query(problem, stage);
            ASSERT_TRUE(match(before, kernel));
            each_leaf(problem, [&](const std::string& path, auto& leaf) {
                const auto use = std::ranges::find(field_uses(), std::string_view(path), &FieldUse::path);
                if (use == field_uses().end() || use->of_family(api)) return;
                const auto kept = leaf;
                using Leaf = std::remove_cvref_t<decltype(leaf)>;
                if constexpr (std::same_as<Leaf, bool>)
                    leaf = !leaf;
                else if constexpr (std::integral<Leaf> || std::is_enum_v<Leaf>)
                    leaf = static_cast<Leaf>(static_cast<std::int64_t>(leaf) + 1);
                const Problem stated = normalised(problem);
                const StageQuery after = make_query(stated, stage);
                EXPECT_EQ(after.equality_key, before.equality_key) << to_string(stage) << ' ' << path;
                EXPECT_EQ(after.needs, before.needs) << to_string(stage) << ' ' << path;
                EXPECT_TRUE(match(after, kernel)) << to_string(stage) << ' ' << path;
                EXPECT_FALSE(unused_fields(problem).empty()) << to_string(stage) << ' ' << path;
                leaf = kept;
                ++unused;
            });
        }
    EXPECT_GT(unused, 9 * 5U);
    const Problem blank;
    for (const std::string_view row : rows) {
        bool found = false;
        each_leaf(blank, [&](const std::string& path, const auto&) { found = found || path == row; });
        EXPECT_TRUE(found) << row;
    }
}

TEST(Match, SurplusCapabilitiesDoNotStopTheMatch) {
    const Problem problem = builder_for(ApiFamily::fwd).mask_type(MaskType::top_left).window(-1, 0).build();
    KernelConfig kernel = kernel_of(KernelFamily::fwd);
    kernel.signature.mask = MaskClass::generic;
    kernel.signature.has_sink = kernel.signature.has_sink_logit = kernel.signature.skip_min_seqlen_q = true;
    EXPECT_TRUE(match(problem, kernel));
    EXPECT_EQ(surplus(facts_of(kernel).has, make_query(problem, KernelFamily::fwd).needs), 4);
}

/// B-8: a page of whole tiles is where the descriptor begins, so that its offsets do not grow with the pool.
TEST(Match, PagesOfATileOrMoreLieInPoolsOfAnySize) {
    Problem problem = problem_for(KernelFamily::batch_prefill);
    KernelConfig kernel = kernel_of(KernelFamily::batch_prefill);
    ASSERT_EQ(kernel.algorithm.tile.n0, 128);
    for (const auto& [page, takes] : {std::pair{64, false}, std::pair{128, true}, std::pair{1024, true}}) {
        problem.signature.page_size = kernel.signature.page_size = page;
        problem.kv_pool_bytes = std::numeric_limits<std::int32_t>::max();
        EXPECT_TRUE(match(problem, kernel)) << page;
        problem.kv_pool_bytes = std::int64_t{1} << 33;
        EXPECT_EQ(static_cast<bool>(match(problem, kernel)), takes) << page;
    }
}

TEST(Match, EmptyArchitectureMatchesEverything) {
    Problem problem = problem_for(KernelFamily::fwd);
    KernelConfig kernel = kernel_of(KernelFamily::fwd);
    problem.arch = "";
    EXPECT_TRUE(match(problem, kernel));
    problem.arch = "gfx1100";
    EXPECT_FALSE(match(problem, kernel));
    kernel.arch = "";
    EXPECT_TRUE(match(problem, kernel));
}

TEST(Match, HeadDimensionPaddingHasThreeStates) {
    Problem problem = problem_for(KernelFamily::fwd);
    problem.signature.hdim_q = problem.signature.hdim_v = 72;
    KernelConfig kernel = kernel_of(KernelFamily::fwd);
    for (const auto& [pad, takes] : {std::pair{0, false}, std::pair{8, true}, std::pair{1, true}}) {
        kernel.algorithm.pad.d = kernel.algorithm.pad.dv = static_cast<std::int8_t>(pad);
        EXPECT_EQ(static_cast<bool>(match(problem, kernel)), takes) << pad;
    }
}

TEST(Constraint, PredicatesAtTheirLimits) {
    const auto with = [](std::int64_t rows, std::int64_t units) {
        return ConstraintInputs{2, 4, rows, 128, 128, units};
    };
    EXPECT_TRUE(holds(Constraint::max_seqlen_q_lt_4096, with(4095, 0)));
    EXPECT_FALSE(holds(Constraint::max_seqlen_q_lt_4096, with(4096, 0)));
    EXPECT_TRUE(holds(Constraint::max_seqlen_q_le_8192, with(8192, 0)));
    EXPECT_FALSE(holds(Constraint::max_seqlen_q_le_8192, with(8193, 0)));
    EXPECT_TRUE(holds(Constraint::max_seqlen_q_gt_16, with(17, 0)));
    EXPECT_FALSE(holds(Constraint::max_seqlen_q_gt_16, with(16, 0)));
    // 8 heads in all; 65 rows are 2 blocks of 64.
    EXPECT_TRUE(holds(Constraint::max_seqlen_q_gt_64, with(65, 0)));
    EXPECT_FALSE(holds(Constraint::max_seqlen_q_gt_64, with(64, 0)));
    EXPECT_TRUE(holds(Constraint::max_seqlen_q_gt_256, with(257, 0)));
    EXPECT_FALSE(holds(Constraint::max_seqlen_q_gt_256, with(256, 0)));
    EXPECT_TRUE(holds(Constraint::max_seqlen_q_gt_2048, with(2049, 0)));
    EXPECT_FALSE(holds(Constraint::max_seqlen_q_gt_2048, with(2048, 0)));
    EXPECT_TRUE(holds(Constraint::max_seqlen_q_gt_1024, with(1025, 0)));
    EXPECT_FALSE(holds(Constraint::max_seqlen_q_gt_1024, with(1024, 0)));
    EXPECT_TRUE(holds(Constraint::blocks64_le_cus, with(65, 16)));
    EXPECT_FALSE(holds(Constraint::blocks64_le_cus, with(65, 15)));
    EXPECT_FALSE(holds(Constraint::blocks128_lt_0_8_cus, with(128, 10)));
    EXPECT_TRUE(holds(Constraint::blocks128_lt_0_8_cus, with(128, 11)));
    ConstraintInputs dims = with(1, 1);
    EXPECT_FALSE(holds(Constraint::hdim_not_128, dims));
    dims.hdim_v = 64;
    EXPECT_TRUE(holds(Constraint::hdim_not_128, dims));
    ConstraintInputs heads = with(1, 1);
    EXPECT_FALSE(holds(Constraint::even_head_groups, heads)); // KV heads are not known
    for (const auto& [nhead_q, nhead_k, even] :
         {std::tuple{8, 4, true}, std::tuple{8, 1, true}, std::tuple{8, 8, false}, std::tuple{6, 2, false}}) {
        heads.nhead_q = nhead_q;
        heads.nhead_k = nhead_k;
        EXPECT_EQ(holds(Constraint::even_head_groups, heads), even) << nhead_q << " over " << nhead_k;
        for (const std::int64_t rows : {1, 2}) {
            heads.max_seqlen_q = rows;
            EXPECT_EQ(holds(Constraint::rows_of_even_groups, heads), even && rows > 1)
                << nhead_q << " " << rows;
        }
    }
    EXPECT_EQ(query_blocks({std::int64_t{1} << 40, std::int64_t{1} << 40, 1, 8, 8, 1}, 64),
              std::numeric_limits<std::int64_t>::max());
}

TEST(Constraint, UnknownNamesAreErrors) {
    KernelConfig kernel = kernel_of(KernelFamily::fwd);
    kernel.algorithm.constraint = "on_tuesdays";
    EXPECT_THROW(facts_of(kernel), DeclarationError);
}

} // namespace
} // namespace fmha
