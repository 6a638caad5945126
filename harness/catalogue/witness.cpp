#include "harness/catalogue/witness.hpp"

#include "dispatcher/selection/constraint.hpp"
#include "dispatcher/types/element.hpp"
#include "dispatcher/types/family_traits.hpp"
#include "dispatcher/types/problem.hpp"
#include "dispatcher/types/type_classes.hpp"
#include "harness/cases/case_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

namespace fmha::harness {
namespace {

/// Rows and keys beyond the last whole tile. Both are even, because packed fp4 values come in pairs (T-2).
constexpr std::int64_t ragged_rows = 6, ragged_keys = 10;
/// A page of caches; pages are multiples of 128 keys (P-4).
constexpr std::int64_t usual_page = 128;
constexpr std::int64_t splits = 2;
/// Outputs of static quantisation come into the middle of the range of 8 bits.
constexpr double static_scale = 12.0;

/// Whether a kernel without head padding reads rows that are wider than its head dimension (H1).
bool reads_beyond_row(const KernelConfig& kernel) {
    const Signature& s = kernel.signature;
    const Algorithm& a = kernel.algorithm;
    return traits_of(s.family).products == MatrixProducts::two && a.pad.d == 0 && a.hdim_q_alignment == 0 &&
           a.tile.k0max > 0 && s.hdim_q % a.tile.k0max != 0;
}

bool needs_whole_rows(const KernelConfig& kernel) {
    return !kernel.algorithm.pad.s && traits_of(kernel.signature.family).query_tiles;
}

bool needs_whole_keys(const KernelConfig& kernel) {
    return !kernel.algorithm.pad.sk && traits_of(kernel.signature.family).key_tiles;
}

struct Refusal {
    Expectation kind;
    std::string_view rule;
};

/// The rule that forbids every problem with the features of the record, or the reason for which the record takes none. Where
/// several do, the first in the order in which problems are checked.
std::optional<Refusal> refusal_of(const KernelConfig& kernel) {
    using enum Expectation;
    const Signature& s = kernel.signature;
    const ApiTraits& api = api_traits_of(s.family);
    const bool prefill = api.lists_pages, group = s.mode == Mode::group;
    if (api.gradients) {
        if (s.has_logits_soft_cap) return Refusal{invalid_problem, "20.1"};
        if (s.qscale != QScale::no_scale) return Refusal{invalid_problem, "20.1"};
    }
    if (s.has_logits_soft_cap && s.bias != BiasType::no_bias) return Refusal{invalid_problem, "C-2"};
    if (s.has_dropout && !api.dropout) return Refusal{invalid_problem, "D-8"};
    if (s.is_store_randval && !s.has_dropout && api.gradients) return Refusal{invalid_problem, "D-7"};
    if (s.has_dbias && (!api.gradients || s.bias != BiasType::elementwise))
        return Refusal{invalid_problem, "W-12"};
    if (api.stores_keys && group) return Refusal{invalid_problem, "V-1"};
    if (s.rope != Rope::none && !is_half(s.data_type)) return Refusal{invalid_problem, "V-7"};
    if (prefill && !group) return Refusal{invalid_problem, "B-1"};
    if (prefill && s.kv_layout == KvLayout::vectorized && s.page_size == 1)
        return Refusal{invalid_problem, "B-1"};
    if (is_micro_scaled(s.data_type) != (s.qscale == QScale::mx)) return Refusal{invalid_problem, "Q-5"};
    // The lengths of packed sequences end anywhere.
    if (group && needs_whole_rows(kernel)) return Refusal{no_kernel, "seqlen_q_not_padded"};
    if (group && needs_whole_keys(kernel)) return Refusal{no_kernel, "seqlen_k_not_padded"};
    if (reads_beyond_row(kernel)) return Refusal{no_kernel, "hdim_q_not_padded"};
    return std::nullopt;
}

/// The mask of a kernel with edges inside a tile, and its sink tokens.
void add_mask(const Signature& s, Case& c) {
    if (s.mask == MaskClass::none) return;
    c.mask = MaskType::bottom_right;
    c.window_left = s.mask == MaskClass::generic ? 50 : -1;
    c.window_right = s.mask == MaskClass::generic ? 20 : 0;
    if (s.has_sink) c.sink_size = 5;
}

/// The partial results that a stage of split-KV stores or combines.
void add_splits(const KernelTraits& stage, Case& c) {
    if (stage.stores_splits) c.split.num_splits = splits;
    if (!stage.combines_splits) return;
    c.split.num_splits = splits + 1;
    c.split.stage = SplitStage::combine;
    c.split.partial_lse = PartialLse::some_empty;
}

/// The pages of a kernel, as it looks them up.
void add_pages(const Signature& s, const ApiTraits& api, Case& c) {
    if (s.use_paged_kv) c.cache.page_size = usual_page;
    if (api.lists_pages) {
        c.cache.page_size = s.page_size;
        c.cache.kv_layout = s.kv_layout;
        c.cache.kv_lookup = s.kv_lookup;
        if (s.kv_lookup == KvLookup::vllm_2d) c.length_form_k = LengthForm::seqlen;
    } else if (s.use_paged_kv && s.page_size > 1) {
        c.cache.page_size = s.page_size;
    }
}

/// The features of a kernel, all of them on, without lengths.
Case features_of(const KernelConfig& kernel) {
    const Signature& s = kernel.signature;
    const ApiTraits& api = api_traits_of(s.family);
    const KernelTraits& stage = traits_of(s.family);
    Case c;
    c.family = api.api;
    c.about = "Kernels of a list compute a problem that has their head dimensions and features.";
    c.tier = Tier::nightly;
    c.labels = {"catalogue"};
    c.data_type = s.data_type;
    c.mode = s.mode;
    c.batch = s.mode == Mode::group ? 2 : 1;
    c.nhead_q = 2;
    c.nhead_k = 1;
    c.hdim_q = s.hdim_q;
    c.hdim_v = s.hdim_v;
    c.v_layout = s.v_layout;
    // Tensor maps want lines of whole units.
    if (kernel.algorithm.pipeline == Pipeline::ws)
        c.stride_padding =
            most_tensor_alignment * 8 / element_bits(element_types(s.data_type, Fp8Flavour::ocp).k);
    // Backward reads an LSE and appending knows none, also where their records say otherwise.
    c.lse = s.has_lse || !api.forward();
    // The main stage of split-KV stores its own LSE in any case; upstream's combine kernels of 8-bit types store none.
    if (stage.stores_splits && !is_half(s.data_type)) c.lse = false;
    add_mask(s, c);
    c.bias = s.bias;
    if (s.bias == BiasType::alibi) c.bias_rank = 1;
    if (s.has_logits_soft_cap) c.logits_soft_cap = 20.0;
    if (s.has_dropout) {
        c.p_drop = 0.2;
        c.dropout_seed = 20250711;
        c.dropout_offset = 3;
    }
    c.store_randval = s.is_store_randval;
    if (s.has_sink_logit) c.sink_logits = SinkLogits::normal;
    c.qscale = s.qscale;
    c.static_quant = s.do_fp8_static_quant;
    if (s.do_fp8_static_quant) c.scale_o = static_scale;
    c.backward.dbias = s.has_dbias;
    c.backward.deterministic = s.is_deterministic;
    if (s.skip_min_seqlen_q && api.min_seqlen_q && s.mode == Mode::group) c.min_seqlen_q = 4;
    add_splits(stage, c);
    c.append.rope = s.rope;
    add_pages(s, api, c);
    if (const auto refusal = refusal_of(kernel)) {
        c.expect = refusal->kind;
        c.expect_rule = refusal->rule;
    }
    return c;
}

/// The features that lengths have to suit.
struct Tiles {
    std::int64_t rows = 0, keys = 0;
    bool whole_rows = false, whole_keys = false;
    std::int64_t most_rows = 0;  ///< 0: any number
    std::int64_t least_rows = 0; ///< 0: as few as the tiles allow

    /// Rows that end inside a tile where they may, behind `before` tiles.
    std::int64_t rows_after(std::int64_t before) const {
        return whole_rows ? (before + 1) * rows : before * rows + ragged_rows;
    }
};

/// Tiles of rows beyond which no kernel of a list begins.
constexpr std::int64_t most_tiles = 1024;

/// The fewest rows for which a kernel is not reserved for others; 0 where two tiles of them do, and where the device or the head dimension
/// decides.
std::int64_t least_rows(const KernelConfig& kernel, const Case& features, const Tiles& tiles) {
    const auto constraint = parse_constraint(kernel.algorithm.constraint.view());
    if (!constraint || needs_compute_units(*constraint)) return 0;
    const auto takes = [&](std::int64_t rows) {
        return holds(*constraint, {features.batch, features.nhead_q, rows, features.hdim_q, features.hdim_v,
                                   0, features.nhead_k});
    };
    std::int64_t tiles_before = 1;
    while (tiles_before < most_tiles && !takes(tiles.rows_after(tiles_before))) ++tiles_before;
    return tiles_before > 1 && tiles_before < most_tiles ? tiles.rows_after(tiles_before) : 0;
}

Tiles tiles_of(const KernelConfig& kernel, const Case& features) {
    const Algorithm& a = kernel.algorithm;
    const bool combine = traits_of(kernel.signature.family).combines_splits;
    // A combine kernel walks rows only; keys stand for the contents of its partial results.
    Tiles tiles{a.tile.m0 > 0 ? a.tile.m0 : combined_tile_rows, combine || a.tile.n0 <= 0 ? 64 : a.tile.n0,
                needs_whole_rows(kernel), needs_whole_keys(kernel), a.max_seq_len_q};
    tiles.least_rows = least_rows(kernel, features, tiles);
    return tiles;
}

void set_lengths(Case& c, const Tiles& tiles) {
    std::int64_t rows = tiles.rows_after(1);
    for (std::int64_t before = 2; rows < tiles.least_rows; ++before) rows = tiles.rows_after(before);
    if (tiles.most_rows > 0) rows = std::min(rows, tiles.most_rows);
    // Each split has keys of two tiles.
    const ApiTraits& api = traits_of(c.family);
    const bool split = api.splits_keys && c.split.stage == SplitStage::both;
    const std::int64_t whole = (split ? 3 : 1) * tiles.keys;
    const std::int64_t keys = tiles.whole_keys ? whole + tiles.keys : whole + ragged_keys;
    c.seqlen_q = {rows};
    c.seqlen_k = {keys};
    if (api.stores_keys) {
        c.append.seqlen_knew = tiles.keys + ragged_keys;
        c.seqlen_k = {tiles.keys / 2 + 1};
    }
    if (c.mode == Mode::group && !api.stores_keys) {
        const std::int64_t few = tiles.most_rows > 0 ? std::min<std::int64_t>(9, tiles.most_rows) : 9;
        c.seqlen_q.push_back(c.min_seqlen_q > 0 ? c.min_seqlen_q - 1 : few);
        c.seqlen_k.push_back(12);
    }
    // Rows above a bottom-right diagonal that begins outside the keys would see none.
    if (c.mask == MaskType::bottom_right && rows > keys) c.mask = MaskType::top_left;
}

/// Orders kernels that one witness may serve together. Those that are reserved for many rows have witnesses of their own, because others are
/// reserved for few.
std::string class_of(const Case& features, const Tiles& tiles) {
    Case base;
    base.family = features.family;
    return fmt::format("{} {} {} {} {} {}", print_name(to_string(features.family), features, base, {}),
                       features.expect_rule, tiles.whole_rows, tiles.whole_keys, tiles.most_rows,
                       tiles.least_rows > 0);
}

} // namespace

std::vector<Witness> witnesses(std::span<const ListedKernel> list) {
    struct Class {
        Witness witness;
        Tiles tiles;
    };
    std::map<std::string, std::size_t> places;
    std::vector<Class> classes;
    for (std::size_t i = 0; i < list.size(); ++i) {
        const Case features = features_of(list[i].config);
        const Tiles tiles = tiles_of(list[i].config, features);
        const auto [place, is_new] = places.emplace(class_of(features, tiles), classes.size());
        if (is_new) classes.push_back({{features, {}}, tiles});
        Class& own = classes[place->second];
        own.witness.kernels.push_back(i);
        own.tiles.rows = std::max(own.tiles.rows, tiles.rows);
        own.tiles.keys = std::max(own.tiles.keys, tiles.keys);
        own.tiles.least_rows = std::max(own.tiles.least_rows, tiles.least_rows);
    }
    std::vector<Witness> all;
    for (Class& one : classes) {
        Case& c = one.witness.of;
        set_lengths(c, one.tiles);
        Case base;
        base.family = c.family;
        c.id = print_name(fmt::format("catalogue/{}", to_string(c.family)), c, base, {});
        all.push_back(std::move(one.witness));
    }
    return all;
}

} // namespace fmha::harness
