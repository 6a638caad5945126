#include "dispatcher/types/type_classes.hpp"
#include "kernels/catalog/ck/ck.hpp"
#include "kernels/catalog/ck/groups.hpp"

#include <array>

namespace fmha::catalog::ck {

namespace {

bool has_hdims(const KernelConfig& c, std::int64_t q, std::int64_t v) {
    return c.signature.hdim_q == q && c.signature.hdim_v == v;
}

bool is_v3_tile(const KernelConfig& c) {
    return c.algorithm.tile.m0 == 256 && c.algorithm.wave.m0 == 8 && c.algorithm.wave.m1 == 8;
}

bool group_pads(const KernelConfig& c) {
    return c.signature.mode != Mode::group || (c.algorithm.pad.s && c.algorithm.pad.sk);
}

bool pair_192_128(const KernelConfig& c) {
    return !has_hdims(c, 192, 128) || (c.signature.bias == BiasType::no_bias && !c.signature.has_dropout);
}

bool soft_cap_without_bias(const KernelConfig& c) {
    return !c.signature.has_logits_soft_cap || c.signature.bias == BiasType::no_bias;
}

bool gfx9_tiles(const KernelConfig& c) {
    const DataType type = c.signature.data_type;
    if (type == DataType::fp32 || is_micro_scaled(type)) return true;
    const Pipeline pipeline = c.algorithm.pipeline;
    if (pipeline != Pipeline::qr && pipeline != Pipeline::qr_async && pipeline != Pipeline::qs) return true;
    if (!has_hdims(c, 128, 128)) return c.algorithm.tile.m0 == 128;
    if (c.algorithm.tile.n0 != 128) return false;
    return pipeline == Pipeline::qr_async || c.algorithm.tile.k0 != 64;
}

bool trload_tiles(const KernelConfig& c) {
    if (c.algorithm.pipeline != Pipeline::qr_async_trload) return true;
    return has_hdims(c, 64, 64) || (has_hdims(c, 128, 128) && c.algorithm.tile.n0 != 128);
}

bool v3_tile_and_pipeline(const KernelConfig& c) {
    return is_v3_tile(c) == (c.algorithm.pipeline == Pipeline::qr_async_trload_v3);
}

bool gfx11_head_pads(const KernelConfig& c) {
    if (!has_hdims(c, 128, 128)) return true;
    const bool narrow = c.algorithm.tile.m0 == 64 && c.algorithm.tile.n0 == 32;
    return (c.algorithm.pad.d != 0) == narrow && (c.algorithm.pad.dv != 0) == narrow;
}

bool sink_with_mask(const KernelConfig& c) {
    return !c.signature.has_sink || c.signature.mask != MaskClass::none;
}

bool single_row_pages(const KernelConfig& c) {
    return c.signature.page_size != 1 || c.signature.kv_layout == KvLayout::linear;
}

bool kv_blockscale_pages(const KernelConfig& c) {
    return c.signature.qscale != QScale::kv_blockscale || c.signature.page_size >= c.algorithm.tile.n0;
}

bool backward_group_pads(const KernelConfig& c) {
    return c.signature.mode != Mode::group || c.algorithm.pad.s;
}

bool small_query_tiles(const KernelConfig& c) {
    return c.algorithm.max_seq_len_q == 0 ||
           (c.signature.mode == Mode::batch && c.signature.mask == MaskClass::none);
}

bool bias_gradient(const KernelConfig& c) {
    return !c.signature.has_dbias || c.signature.bias == BiasType::elementwise;
}

bool no_wide_dropout(const KernelConfig& c) {
    return c.algorithm.dropout_variant != DropoutVariant::dropout_wg32 &&
           c.algorithm.dropout_variant != DropoutVariant::dropout_wg32_storerandval;
}

bool short_queries_pad(const KernelConfig& c) {
    return c.algorithm.pad.s || c.algorithm.max_seq_len_q == 0 || c.algorithm.max_seq_len_q >= 64;
}

bool backward_head_pads(const KernelConfig& c) {
    const Padding& pad = c.algorithm.pad;
    if (c.algorithm.use_trload) return pad.d == pad.dv && pad.d != 1;
    return pad.d == pad.dv || pad.d != 8;
}

using tables::Rule;

constexpr std::array rules{
    Rule{"R1", "forward and key-value families", "group mode needs padding of both sequence axes",
         group_pads},
    Rule{"R2", "fwd, fwd_pagedkv", "head dimensions (192,128) come without bias and without dropout",
         pair_192_128},
    Rule{"R3", "fwd, fwd_splitkv, fwd_pagedkv, batch_prefill", "the soft cap comes only without bias",
         soft_cap_without_bias},
    Rule{"R4", "fwd on gfx9",
         "pipelines qr, qr_async and qs of 8- and 16-bit types take at (128,128) only tiles of 128 keys (and "
         "k0 64 "
         "only with qr_async), elsewhere only tiles of 128 query rows",
         gfx9_tiles},
    Rule{"R5", "fwd on gfx950",
         "qr_async_trload serves only (64,64) and (128,128), and not the 128-key tile of the latter",
         trload_tiles},
    Rule{"R6", "fwd on gfx950",
         "the tile of 256 rows and 8 waves and pipeline qr_async_trload_v3 go together",
         v3_tile_and_pipeline},
    Rule{"R7", "fwd on gfx11",
         "at (128,128) the 64 x 32 tile needs head-dimension padding and every other tile must not have it",
         gfx11_head_pads},
    Rule{"R8", "batch_prefill", "sink tokens need a mask", sink_with_mask},
    Rule{"R9", "batch_prefill", "pages of one token need the linear layout", single_row_pages},
    Rule{"R10", "batch_prefill", "kv_blockscale needs pages of at least one key tile", kv_blockscale_pages},
    Rule{"B1", "bwd", "group mode needs padding of the query axis", backward_group_pads},
    Rule{"B2", "bwd", "tiles for short queries serve batch mode without mask only", small_query_tiles},
    Rule{"B3", "bwd", "the bias gradient needs an elementwise bias", bias_gradient},
    Rule{"B4", "bwd", "the 32-row random generator is not built", no_wide_dropout},
    Rule{"B5", "bwd", "tiles for fewer than 64 query rows need padding of the query axis", short_queries_pad},
    Rule{"B6", "bwd",
         "transposed loads pad both head dimensions alike by 0 or 8; other kernels pad hdim_q by 8 only "
         "together "
         "with hdim_v",
         backward_head_pads},
};

} // namespace

std::span<const Rule> all_rules() {
    return rules;
}

std::vector<RuleRow> rule_rows() {
    std::vector<RuleRow> rows;
    for (const Rule& rule : rules) rows.push_back({rule.id, rule.families, rule.says});
    return rows;
}

} // namespace fmha::catalog::ck
