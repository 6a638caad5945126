#pragma once

#include "kernels/catalog/catalog.hpp"

#include <array>
#include <string>
#include <string_view>
#include <vector>

/// Kernel tables as values: the content of a table file of the architecture folder, with bases and imports merged
/// in.
namespace fmha::catalog::tables {

/// One rule with an id: accepts or rejects a candidate that a table row and a pipeline entry made.
struct Rule {
    std::string_view id;
    std::string_view families;
    std::string_view says;
    bool (*accepts)(const KernelConfig& candidate);
};

struct HeadDims {
    std::int16_t q = 0, v = 0;
    friend bool operator==(HeadDims, HeadDims) = default;
};

struct TileEntry {
    Tile block;
    GemmTriples wave, warp;
    std::int32_t block_per_cu = -1;
    std::int64_t max_seq_q = 0; ///< longest query that the tile serves, 0 = any
    Tag constraint;
    std::int32_t rank = 0; ///< added to that of the pipeline entry
    bool only_custom_factory = false;
    std::string source; ///< table path and JSON pointer
};

/// The tiles of one (data type, head dimensions) bucket in table order.
struct TileRow {
    DataType data_type = DataType::fp16;
    HeadDims hdim;
    std::vector<TileEntry> tiles;
};

/// One pipeline of a row: the fields that it fixes.
struct PipelineEntry {
    Pipeline pipeline = Pipeline::qr;
    Padding pad;
    VLayout v_layout = VLayout::row;
    bool trload = false, static_quant = false, only_extended = false;
    std::optional<bool> lse;
    Rope rope = Rope::none;
    std::int32_t rank = 0; ///< selection rank: of kernels that differ only in the entry, the lowest serves
    std::uint8_t biases = 0x7; ///< bit per BiasType: at which points of the product this entry stands
    std::string source;
    std::string id; ///< of the row, where it has one ("HX-03")
};

/// Feature axes of a row; the product runs leftmost slowest in the order of the members.
struct FeatureAxes {
    std::vector<bool> logits{false};
    std::vector<QScale> qscale{QScale::no_scale};
    std::vector<MaskClass> mask; ///< empty = the vocabulary of the request
    std::vector<BiasType> bias{BiasType::no_bias};
    std::vector<bool> lse{false}, dropout{false}, paged_kv{false}, skip{false}, sink{false};
    std::vector<KvLayout> kv_layout{KvLayout::unset};
    std::vector<KvLookup> kv_lookup{KvLookup::unset};
};

/// Pipelines for some data types and head dimensions.
struct PipelineRow {
    std::vector<DataType> data_types;
    std::vector<HeadDims> hdims; ///< empty = all
    std::vector<HeadDims> except_hdims;
    FeatureAxes axes;
    std::vector<PipelineEntry> entries;

    bool applies_to(DataType type, HeadDims hdim) const;
};

/// The forward-shaped families: forward, split, combine, paged, append and batch prefill.
struct ForwardTables {
    std::vector<DataType> data_types;
    std::vector<Mode> modes{Mode::batch, Mode::group};
    std::vector<std::int32_t> page_sizes{1};
    std::vector<const Rule*> rules;
    std::vector<TileRow> tiles;
    std::vector<PipelineRow> pipelines;
};

struct BackwardTile {
    DataType data_type = DataType::fp16;
    std::int16_t hdim = 0;
    Tile block;
    GemmTriples wave, warp;
    std::int32_t block_per_cu = -1;
    std::int64_t max_seq_q = 0;
    bool trload = false;
    std::string source;
};

struct BackwardTables {
    std::vector<DataType> data_types;
    std::vector<const Rule*> rules;
    std::vector<BackwardTile> tiles;
};

/// The family tables of one architecture (group), and the name that its kernels carry.
struct ForwardGroup {
    ArchName name;
    ForwardTables tables;
};
struct BackwardGroup {
    ArchName name;
    BackwardTables tables;
};

/// The forward-shaped families in the order in which a run lists them: combine stands before its main
/// kernels.
inline constexpr std::array forward_families{
    KernelFamily::fwd,          KernelFamily::fwd_splitkv_combine, KernelFamily::fwd_splitkv,
    KernelFamily::fwd_appendkv, KernelFamily::fwd_pagedkv,         KernelFamily::batch_prefill,
};

constexpr bool has_backward(FamilySet families) {
    return families.has(KernelFamily::bwd_dot_do_o) || families.has(KernelFamily::bwd_dq_dk_dv) ||
           families.has(KernelFamily::bwd_convert_dq);
}

} // namespace fmha::catalog::tables
