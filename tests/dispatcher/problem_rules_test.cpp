// Problems that are refused, by rule and field.

#include "dispatcher/types/problem.hpp"
#include "tests/dispatcher/kernels.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <limits>

namespace fmha {
namespace {

using testing::builder_for;
using ::testing::HasSubstr;

/// A row of semantics section 23: how to break a valid problem, and which rule and field must be named. The
/// unbroken problem is the accepting case.
struct Rejection {
    std::string name;
    ApiFamily api;
    std::function<void(Problem&)> spoil;
    std::string rule, field;
};

Problem valid(ApiFamily api) {
    Problem problem = builder_for(api).build();
    if (api == ApiFamily::bwd) problem.seqlen_k = 512;
    return problem;
}

void to_group(Problem& p) {
    p.signature.mode = Mode::group;
    p.max_seqlen_q = 256;
    p.presence.seqstart_q = p.presence.seqstart_k = true;
}

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

std::vector<Rejection> rejections() {
    using enum ApiFamily;
    return {
        {"batch_zero", fwd, [](Problem& p) { p.batch = 0; }, "H-1", "batch"},
        {"nhead_q_negative", fwd, [](Problem& p) { p.nhead_q = -8; }, "H-1", "nhead_q"},
        {"nhead_k_zero", fwd, [](Problem& p) { p.nhead_k = 0; }, "H-1", "nhead_k"},
        {"heads_do_not_divide", fwd, [](Problem& p) { p.nhead_k = 3; }, "H-1", "nhead_q"},
        {"hdim_q_zero", fwd, [](Problem& p) { p.signature.hdim_q = 0; }, "H-2", "hdim_q"},
        {"hdim_v_negative", fwd, [](Problem& p) { p.signature.hdim_v = -8; }, "H-2", "hdim_v"},
        {"hdim_q_not_8", fwd, [](Problem& p) { p.signature.hdim_q = 127; }, "H-2", "hdim_q"},
        {"hdim_v_not_8", fwd, [](Problem& p) { p.signature.hdim_v = 33; }, "H-2", "hdim_v"},
        {"group_without_seqstart_q", fwd,
         [](Problem& p) {
             to_group(p);
             p.presence.seqstart_q = false;
         },
         "N-2", "seqstart_q"},
        {"group_without_seqstart_k", fwd,
         [](Problem& p) {
             to_group(p);
             p.presence.seqstart_k = false;
         },
         "N-2", "seqstart_k"},
        {"group_without_max_seqlen", fwd,
         [](Problem& p) {
             to_group(p);
             p.max_seqlen_q = 0;
         },
         "N-2", "max_seqlen_q"},
        {"two_query_lengths", fwd, [](Problem& p) { p.presence.seqlen_q = p.presence.cu_seqlen_q = true; },
         "N-3", "cu_seqlen_q"},
        {"two_key_lengths", bwd, [](Problem& p) { p.presence.seqlen_k = p.presence.cu_seqlen_k = true; },
         "N-3", "cu_seqlen_k"},
        {"negative_length", fwd, [](Problem& p) { p.seqlen_k = -1; }, "N-4", "seqlen_k"},
        {"split_with_query_lengths", fwd_splitkv, [](Problem& p) { p.presence.seqlen_q = true; }, "N-6",
         "seqlen_q"},
        {"paged_with_cumulative_keys", fwd_pagedkv, [](Problem& p) { p.presence.cu_seqlen_k = true; }, "N-6",
         "cu_seqlen_k"},
        {"append_with_cumulative_queries", fwd_appendkv, [](Problem& p) { p.presence.cu_seqlen_q = true; },
         "N-6", "cu_seqlen_q"},
        {"min_seqlen_in_batch_mode", fwd, [](Problem& p) { p.min_seqlen_q = 4; }, "N-5", "min_seqlen_q"},
        {"min_seqlen_negative", fwd, [](Problem& p) { p.min_seqlen_q = -1; }, "N-5", "min_seqlen_q"},
        {"min_seqlen_in_backward", bwd,
         [](Problem& p) {
             to_group(p);
             p.min_seqlen_q = 4;
         },
         "N-5", "min_seqlen_q"},
        {"soft_cap_with_bias", fwd,
         [](Problem& p) {
             p.signature.has_logits_soft_cap = true;
             p.signature.bias = BiasType::elementwise;
         },
         "C-2", "bias"},
        {"soft_cap_with_alibi", fwd,
         [](Problem& p) {
             p.signature.has_logits_soft_cap = true;
             p.signature.bias = BiasType::alibi;
         },
         "C-2", "bias"},
        {"dropout_in_split", fwd_splitkv, [](Problem& p) { p.signature.has_dropout = true; }, "D-8",
         "has_dropout"},
        {"dropout_in_prefill", batch_prefill, [](Problem& p) { p.signature.has_dropout = true; }, "D-8",
         "has_dropout"},
        {"randval_without_dropout", fwd, [](Problem& p) { p.signature.is_store_randval = true; }, "D-7",
         "is_store_randval"},
        {"dbias_in_forward", fwd,
         [](Problem& p) {
             p.signature.bias = BiasType::elementwise;
             p.signature.has_dbias = true;
         },
         "W-12", "has_dbias"},
        {"reduced_gradients_in_forward", fwd, [](Problem& p) { p.reduce_dk_dv = true; }, "W-11",
         "reduce_dk_dv"},
        {"dbias_with_alibi", bwd,
         [](Problem& p) {
             p.signature.bias = BiasType::alibi;
             p.signature.has_dbias = true;
         },
         "W-12", "has_dbias"},
        {"dbias_without_bias", bwd, [](Problem& p) { p.signature.has_dbias = true; }, "W-12", "has_dbias"},
        {"backward_soft_cap", bwd, [](Problem& p) { p.signature.has_logits_soft_cap = true; }, "20.1",
         "has_logits_soft_cap"},
        {"backward_quantised", bwd, [](Problem& p) { p.signature.qscale = QScale::pertensor; }, "20.1",
         "qscale"},
        {"backward_static_quant", bwd, [](Problem& p) { p.signature.do_fp8_static_quant = true; }, "20.1",
         "do_fp8_static_quant"},
        {"backward_sink_tokens", bwd, [](Problem& p) { p.signature.has_sink = true; }, "K-2", "has_sink"},
        {"backward_paged", bwd, [](Problem& p) { p.signature.use_paged_kv = true; }, "20.1", "use_paged_kv"},
        {"backward_column_v", bwd, [](Problem& p) { p.signature.v_layout = VLayout::column; }, "20.1",
         "v_layout"},
        {"backward_fp8", bwd, [](Problem& p) { p.signature.data_type = DataType::fp8bf16; }, "20.1",
         "data_type"},
        {"append_group", fwd_appendkv, [](Problem& p) { p.signature.mode = Mode::group; }, "V-1", "mode"},
        {"append_without_fill_level", fwd_appendkv, [](Problem& p) { p.presence.seqlen_k = false; }, "V-1",
         "seqlen_k"},
        {"rope_fp32", fwd_appendkv,
         [](Problem& p) {
             p.signature.rope = Rope::interleaved;
             p.rotary_dim = 64;
             p.signature.data_type = DataType::fp32;
         },
         "V-7", "data_type"},
        {"rotary_dim_not_16", fwd_appendkv,
         [](Problem& p) {
             p.signature.rope = Rope::half_rotated;
             p.rotary_dim = 24;
         },
         "V-4", "rotary_dim"},
        {"rotary_dim_zero", fwd_appendkv, [](Problem& p) { p.signature.rope = Rope::half_rotated; }, "V-4",
         "rotary_dim"},
        {"rotary_dim_too_large", fwd_appendkv,
         [](Problem& p) {
             p.signature.rope = Rope::interleaved;
             p.rotary_dim = 144;
         },
         "V-4", "rotary_dim"},
        {"rotary_dim_of_wide_values", fwd_appendkv,
         [](Problem& p) {
             p.signature.rope = Rope::interleaved;
             p.signature.hdim_q = 64;
             p.rotary_dim = 96;
         },
         "V-4", "rotary_dim"},
        {"rope_in_forward", fwd,
         [](Problem& p) {
             p.signature.rope = Rope::interleaved;
             p.rotary_dim = 64;
         },
         "V-4", "rope"},
        {"cache_index_in_group", fwd_splitkv,
         [](Problem& p) {
             to_group(p);
             p.presence.cache_batch_idx = true;
         },
         "P-6", "cache_batch_idx"},
        {"cache_index_with_pages", fwd_pagedkv, [](Problem& p) { p.presence.cache_batch_idx = true; }, "P-6",
         "cache_batch_idx"},
        {"gappy_without_lengths", fwd_pagedkv, [](Problem& p) { p.presence.is_gappy = true; }, "P-3",
         "is_gappy"},
        {"page_not_128", fwd_pagedkv, [](Problem& p) { p.signature.page_size = 64; }, "P-4", "page_size"},
        {"page_zero", fwd_pagedkv, [](Problem& p) { p.signature.page_size = 0; }, "P-4", "page_size"},
        {"split_page_not_128", fwd_splitkv,
         [](Problem& p) {
             p.signature.use_paged_kv = true;
             p.signature.page_size = 100;
         },
         "P-4", "page_size"},
        {"forward_paged", fwd, [](Problem& p) { p.signature.use_paged_kv = true; }, "P-1", "use_paged_kv"},
        {"paged_without_pages", fwd_pagedkv, [](Problem& p) { p.signature.use_paged_kv = false; }, "P-2",
         "use_paged_kv"},
        {"prefill_batch_mode", batch_prefill, [](Problem& p) { p.signature.mode = Mode::batch; }, "B-1",
         "mode"},
        {"prefill_column_v", batch_prefill, [](Problem& p) { p.signature.v_layout = VLayout::column; }, "B-1",
         "v_layout"},
        {"prefill_page_not_power_of_two", batch_prefill, [](Problem& p) { p.signature.page_size = 48; },
         "B-1", "page_size"},
        {"prefill_page_one_vectorized", batch_prefill,
         [](Problem& p) {
             p.signature.kv_layout = KvLayout::vectorized;
             p.signature.page_size = 1;
         },
         "B-1", "page_size"},
        {"prefill_vector_does_not_divide", batch_prefill,
         [](Problem& p) {
             p.signature.kv_layout = KvLayout::vectorized;
             p.signature.page_size = 4;
         },
         "B-3", "page_size"},
        {"prefill_without_layout", batch_prefill, [](Problem& p) { p.signature.kv_layout = KvLayout::unset; },
         "B-2", "kv_layout"},
        {"prefill_without_lookup", batch_prefill, [](Problem& p) { p.signature.kv_lookup = KvLookup::unset; },
         "B-2", "kv_lookup"},
        {"too_many_splits", fwd_splitkv, [](Problem& p) { p.num_splits = 129; }, "S-7", "num_splits"},
        {"mx_row_major", fwd,
         [](Problem& p) {
             p.signature.data_type = DataType::mxfp8;
             p.signature.qscale = QScale::mx;
         },
         "Q-5", "v_layout"},
        {"mx_without_scales", fwd,
         [](Problem& p) {
             p.signature.data_type = DataType::mxfp8;
             p.signature.v_layout = VLayout::column;
         },
         "Q-5", "qscale"},
        {"fp4_odd_keys", fwd,
         [](Problem& p) {
             p.signature.data_type = DataType::mxfp4;
             p.signature.qscale = QScale::mx;
             p.signature.v_layout = VLayout::column;
             p.seqlen_k = 511;
         },
         "T-2", "seqlen_k"},
        {"kv_blockscale_in_forward", fwd, [](Problem& p) { p.signature.qscale = QScale::kv_blockscale; },
         "15", "qscale"},
        {"blockscale_in_prefill", batch_prefill, [](Problem& p) { p.signature.qscale = QScale::blockscale; },
         "15", "qscale"},
        {"unknown_data_type", fwd, [](Problem& p) { p.signature.data_type = static_cast<DataType>(77); },
         "T-4", "data_type"},
        {"foreign_stage", fwd, [](Problem& p) { p.signature.family = KernelFamily::bwd_dq_dk_dv; }, "9",
         "family"},
        {"sink_size_negative", fwd, [](Problem& p) { p.sink_size = -1; }, "K-1", "sink_size"},
        {"sink_size_without_flag", fwd, [](Problem& p) { p.sink_size = 4; }, "K-3", "has_sink"},
        {"append_sink_logit", fwd_appendkv, [](Problem& p) { p.signature.has_sink_logit = true; }, "K-4",
         "has_sink_logit"},
        {"mask_class_does_not_follow", fwd, [](Problem& p) { p.signature.mask = MaskClass::causal; }, "M-6",
         "mask"},
        {"generic_mask_sees_nothing", fwd,
         [](Problem& p) {
             p.mask_type = MaskType::window_generic;
             p.signature.mask = MaskClass::generic;
             p.window_left = 2;
             p.window_right = -3;
         },
         "M-7", "window_right"},
        {"batch_longer_than_its_longest", fwd_splitkv,
         [](Problem& p) {
             p.seqlen_q = 65;
             p.max_seqlen_q = 64;
         },
         "N-1", "max_seqlen_q"},
        {"q_exceeds_64_bits_behind_max_seqlen", fwd,
         [](Problem& p) {
             p.seqlen_q = largest;
             p.max_seqlen_q = 1;
         },
         "L-1", "q"},
        {"window_beyond_2_to_60", fwd,
         [](Problem& p) {
             p.mask_type = MaskType::top_left;
             p.signature.mask = MaskClass::causal;
             p.window_left = -1;
             p.window_right = largest;
         },
         "M-1", "window_right"},
        {"left_window_beyond_2_to_60", bwd,
         [](Problem& p) {
             p.mask_type = MaskType::bottom_right;
             p.signature.mask = MaskClass::generic;
             p.window_left = (std::int64_t{1} << 60) + 1;
             p.window_right = 0;
         },
         "M-1", "window_left"},
        {"generic_window_beyond_2_to_60", fwd,
         [](Problem& p) {
             p.mask_type = MaskType::window_generic;
             p.signature.mask = MaskClass::generic;
             p.window_left = -largest;
             p.window_right = largest;
         },
         "M-7", "window_left"},
        {"negative_compute_units", fwd, [](Problem& p) { p.compute_units = -1; }, "S-6", "compute_units"},
        {"negative_pool", fwd, [](Problem& p) { p.kv_pool_bytes = -1; }, "B-8", "kv_pool_bytes"},
        {"alignment_of_three", fwd, [](Problem& p) { p.tensor_alignment = 3; }, "L-1", "tensor_alignment"},
        {"alignment_of_nothing", fwd, [](Problem& p) { p.tensor_alignment = 0; }, "L-1", "tensor_alignment"},
        {"alignment_beyond_units", fwd, [](Problem& p) { p.tensor_alignment = 32; }, "L-1",
         "tensor_alignment"},
        {"q_exceeds_64_bits", fwd, [](Problem& p) { p.seqlen_q = largest; }, "L-1", "q"},
        {"k_exceeds_64_bits", fwd, [](Problem& p) { p.seqlen_k = largest / 1024; }, "L-1", "k"},
        {"bias_exceeds_64_bits", fwd,
         [](Problem& p) {
             p.signature.bias = BiasType::elementwise;
             p.seqlen_q = p.seqlen_k = std::int64_t{1} << 30;
         },
         "L-1", "bias"},
    };
}

class RejectedProblem : public ::testing::TestWithParam<Rejection> {};

TEST_P(RejectedProblem, NamesRuleAndField) {
    const Rejection& row = GetParam();
    Problem problem = valid(row.api);
    EXPECT_NO_THROW(validate(problem));
    row.spoil(problem);
    try {
        validate(problem);
        FAIL() << "accepted";
    } catch (const ProblemError& error) {
        EXPECT_EQ(error.rule(), row.rule) << error.what();
        EXPECT_EQ(error.field(), row.field) << error.what();
        EXPECT_THAT(error.what(), HasSubstr(row.rule));
    }
}

INSTANTIATE_TEST_SUITE_P(Section23, RejectedProblem, ::testing::ValuesIn(rejections()),
                         [](const auto& row) { return row.param.name; });

} // namespace
} // namespace fmha
