#include "dispatcher/types/element.hpp"
#include "kernels/catalog/ck/groups.hpp"
#include "kernels/catalog/house/house.hpp"

#include <algorithm>
#include <array>

namespace fmha::catalog::house {

using tables::Rule;

namespace {

bool exact_head_tile(const KernelConfig& c) {
    if (c.algorithm.pad.d != 0 && c.algorithm.pad.dv != 0) return true;
    const std::int64_t hdim = c.signature.hdim_q;
    return c.algorithm.tile.k0max == hdim && hdim != 80 && hdim != 96;
}

bool folded_sinks(const KernelConfig& c) {
    if (c.algorithm.pipeline == Pipeline::qr_async_trload_v3) return !c.signature.has_sink;
    return c.signature.has_sink == (c.signature.mask != MaskClass::causal);
}

bool transposed_loads_in_batch(const KernelConfig& c) {
    return !c.algorithm.use_trload || c.signature.mode == Mode::batch;
}

bool warp_group_tiles(const KernelConfig& c) {
    constexpr int rows_of_a_team = 64;
    return (c.algorithm.pipeline == Pipeline::ws) == (c.algorithm.warp.m0 == rows_of_a_team);
}

bool features_beside_accumulators(const KernelConfig& c) {
    if (c.algorithm.pipeline != Pipeline::ws) return true;
    const BiasType bias = c.signature.bias;
    const int keys = c.algorithm.tile.n0;
    if (c.algorithm.wave.m0 == 3)
        return bias == BiasType::no_bias && !c.signature.has_logits_soft_cap &&
               (c.signature.mask != MaskClass::generic || c.signature.family == KernelFamily::fwd);
    constexpr int keys_with_bias = 128, keys_of_256_channels = 80, channels_at_the_limit = 256;
    if (keys > keys_with_bias) return bias == BiasType::no_bias && !c.signature.has_logits_soft_cap;
    if (bias != BiasType::alibi) return true;
    // 24 bytes would spill, in group mode none.
    const bool windows_with_lse = c.signature.family == KernelFamily::fwd &&
                                  c.signature.mode == Mode::batch && c.signature.has_lse &&
                                  c.signature.mask == MaskClass::generic;
    return keys != keys_of_256_channels && !(windows_with_lse && c.signature.hdim_v == channels_at_the_limit);
}

bool packs_heads(const KernelConfig& c) {
    return c.algorithm.constraint.view() == "even_head_groups";
}

bool packed_heads_alike(const KernelConfig& c) {
    if (!packs_heads(c)) return true;
    return c.algorithm.pipeline == Pipeline::ws && c.signature.mode == Mode::batch &&
           c.signature.bias == BiasType::no_bias;
}

bool few_rows_alike(const KernelConfig& c) {
    return c.algorithm.constraint.view() != "rows_of_even_groups" ||
           (c.signature.bias == BiasType::no_bias && c.signature.qscale == QScale::no_scale);
}

bool team_tiles_by_mask(const KernelConfig& c) {
    if (c.algorithm.pipeline != Pipeline::ws || packs_heads(c)) return true;
    if (c.algorithm.wave.m0 == 1) return c.signature.mask == MaskClass::causal;
    if (c.algorithm.wave.m0 == 3)
        return (c.signature.mask == MaskClass::none) ==
               (c.algorithm.constraint.view() == "max_seqlen_q_gt_256");
    constexpr int most_masked_keys = 128, keys_without_window = 80;
    if (c.algorithm.tile.n0 == keys_without_window) return c.signature.mask != MaskClass::generic;
    return c.algorithm.tile.n0 <= most_masked_keys || c.signature.mask == MaskClass::none;
}

bool pages_of_boxes(const KernelConfig& c) {
    const int least = element_bits(element_types(c.signature.data_type, fp8_flavour(c.arch)).k) == 8 ? 16 : 8;
    const int page = c.signature.page_size, keys = c.algorithm.tile.n0;
    if (c.algorithm.pipeline != Pipeline::ws || page % keys == 0) return true;
    // The feed needs registers for pages and for the mask, which three teams do not have to give.
    const bool feed_has_room = c.algorithm.wave.m0 < 3 || c.signature.mask == MaskClass::none;
    return feed_has_room && page >= least && keys % page == 0;
}

bool lines_end_with_tensors(const KernelConfig& c) {
    return c.algorithm.pipeline != Pipeline::ws || c.signature.v_layout == VLayout::row ||
           c.signature.mode == Mode::batch;
}

bool symmetric_backward_pads(const KernelConfig& c) {
    return c.algorithm.pad.d == c.algorithm.pad.dv && c.algorithm.pad.d != 1;
}

constexpr std::array own_rules{
    Rule{"H1", "fwd, fwd_splitkv, fwd_pagedkv",
         "a kernel without head padding needs a tile exactly as wide as its head dimension, and rows of 80 "
         "and 96 "
         "are stored wider than that",
         exact_head_tile},
    Rule{"H2", "forward families",
         "mask classes none and generic always take sinks, causal never does, v3 has none: three kernels "
         "serve every "
         "mask",
         folded_sinks},
    Rule{"H4", "fwd", "transposed loads serve batch mode", transposed_loads_in_batch},
    Rule{"H5", "bwd",
         "both head dimensions are padded alike, by 0 or 8; legal head dimensions are multiples of 8",
         symmetric_backward_pads},
    Rule{"H6", "fwd, fwd_pagedkv and batch_prefill on sm_90",
         "products of warp groups, 64 rows each, and pipeline ws go together", warp_group_tiles},
    Rule{"H7", "fwd, fwd_pagedkv and batch_prefill on sm_90",
         "pipeline ws: three teams come without bias and soft cap, and over pages without a generic mask, "
         "tiles of more than 128 keys without bias and soft cap, those of 80 keys without ALiBi, and 256 "
         "channels in batch mode without ALiBi, a generic mask and an LSE together: their registers do not "
         "do, or their products are serialized",
         features_beside_accumulators},
    Rule{"H8", "fwd, fwd_pagedkv and batch_prefill on sm_90",
         "pipeline ws: one team serves a causal mask; three teams serve more than 256 rows without a mask, "
         "where teams without rows skip their work, and more than 1024 under one; tiles of 176 keys come "
         "without a mask, those of 80 without a window, because a team on the edge of a mask sees less of a "
         "larger tile",
         team_tiles_by_mask},
    Rule{
        "H9", "fwd on sm_90",
        "pipeline ws with V by column serves batch mode: tensor copies end lines of keys where a tensor ends",
        lines_end_with_tensors},
    Rule{"H10", "batch_prefill on sm_90",
         "pipeline ws takes pages of 8 keys or more, of 8 bits 16 or more, which tensor copies bring as rows "
         "of the swizzle, and tiles of whole pages or pages of whole tiles; three teams, whose feed spills "
         "beside several pages and a mask, of the latter alone under one",
         pages_of_boxes},
    Rule{"H11", "fwd on sm_90",
         "pipeline ws packs rows of several query heads of a KV head into a tile in batch mode and without "
         "bias: a map that ends with sequences has no dimension for heads, and a bias is one head's",
         packed_heads_alike},
    Rule{"H12", "fwd_splitkv and fwd_pagedkv on sm_90",
         "tiles that several query heads of a KV head share, with 2 to 8 rows each, come without bias: a "
         "bias is one "
         "head's",
         few_rows_alike},
};

struct Extension {
    std::string_view id, families, says;
};

constexpr std::array extensions{
    Extension{"HX-00", "all", "upstream's tiles and pipelines"},
    Extension{"HX-01", "forward families, bwd_dot_do_o",
              "kernels that take sink tokens take sink logits too; the row sums of backward always do"},
    Extension{"HX-02", "fwd",
              "every dropout kernel can store its random bytes; whether it does is a run-time flag"},
    Extension{"HX-03", "fwd", "column-major V"},
    Extension{"HX-04", "forward families", "8-bit types wherever the hardware has them"},
    Extension{"HX-05", "fwd", "transposed-load kernels mask ragged sequences themselves"},
    Extension{"HX-06", "fwd", "block-scaled types with every feature"},
    Extension{"HX-07", "fwd", "group-mode kernels can skip short entries (N-5); a table for NVIDIA Hopper"},
    Extension{"HX-08", "bwd", "fp32 at head dimension 256"},
    Extension{"HX-09", "fwd_pagedkv", "paged kernels with LSE, with head padding and at head dimension 256"},
    Extension{"HX-10", "fwd_splitkv_combine", "one combine kernel takes up to 128 splits"},
    Extension{"HX-11", "fwd_splitkv_combine, fwd_appendkv",
              "upstream's combine and append kernels for NVIDIA Hopper too: they multiply no matrices"},
    Extension{"HX-12", "batch_prefill",
              "a table for NVIDIA Hopper, with the features of upstream's; tiles of 16 rows for decode"},
    Extension{
        "HX-13", "fwd_splitkv, fwd_pagedkv",
        "tables for NVIDIA Hopper, with the features of the other architectures' kernels; tiles of 16 rows "
        "for decode"},
    Extension{"HX-14", "bwd", "tables for NVIDIA Hopper, and tiles for RDNA whose sums fit its registers"},
    Extension{"HX-15", "fwd, fwd_pagedkv, batch_prefill",
              "warp-specialised kernels for NVIDIA Hopper, fp16, bf16 and e4m3, tiles by head dimension and "
              "length"},
};

} // namespace

std::span<const Rule> all_rules() {
    static const std::vector<Rule> rules = [] {
        const auto base = ck::all_rules();
        std::vector<Rule> joined(base.begin(), base.end());
        joined.insert(joined.end(), own_rules.begin(), own_rules.end());
        return joined;
    }();
    return rules;
}

std::vector<RuleRow> rule_rows() {
    std::vector<RuleRow> rows;
    rows.reserve(std::size(extensions) + std::size(all_rules()) + 1);
    for (const Extension& extension : extensions)
        rows.push_back({extension.id, extension.families, extension.says});
    for (const Rule& rule : all_rules()) rows.push_back({rule.id, rule.families, rule.says});
    rows.push_back({"HW", "all", hardware_rule});
    return rows;
}

bool hardware_has(const arch::Hardware& hardware, const KernelConfig& config) {
    const bool has_pipeline = config.signature.family == KernelFamily::fwd_splitkv_combine ||
                              hardware.limits.has(config.algorithm.pipeline);
    return hardware.limits.has(config.signature.data_type) && has_pipeline &&
           (!config.algorithm.use_trload || hardware.limits.has(Pipeline::qr_async_trload));
}

KernelConfig finished(const KernelConfig& candidate, const ArchName& arch) {
    KernelConfig config = candidate;
    Signature& s = config.signature;
    Algorithm& a = config.algorithm;
    config.arch = arch;
    s.has_sink_logit = s.has_sink || s.family == KernelFamily::bwd_dot_do_o;
    if (s.family == KernelFamily::fwd) {
        s.is_store_randval = s.has_dropout;
        s.skip_min_seqlen_q = s.mode == Mode::group;
    }
    // Tensor copies have addresses of 64 bits.
    if (a.load_mode != LoadMode::none && a.pipeline == Pipeline::ws) a.load_mode = LoadMode::gload;
    if (s.family == KernelFamily::fwd_splitkv_combine) {
        a.max_splits_log2 = 7;
        return config; // columns come in tiles of 32; no alignment beyond that
    }
    if (a.pad.d == 0) a.hdim_q_alignment = static_cast<std::int32_t>(s.hdim_q);
    if (a.pad.dv == 0) a.hdim_v_alignment = static_cast<std::int32_t>(s.hdim_v);
    return config;
}

} // namespace fmha::catalog::house
