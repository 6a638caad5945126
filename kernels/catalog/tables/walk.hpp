#pragma once

#include "kernels/catalog/tables/tables.hpp"

#include <initializer_list>

/// The loop nests of rule set `ck`. Each calls `visit` for every candidate before any rule, in emission
/// order.
namespace fmha::catalog::tables {

/// The request's list of head dimensions has this one, or is no restriction.
bool optdim_keeps(const Request& request, std::int64_t hdim_q);

/// Where a candidate comes from.
struct Origin {
    const TileEntry* tile = nullptr;
    const PipelineEntry* pipeline = nullptr;
};

/// A point of a row's feature product: the part of a candidate that does not depend on mode and tile.
struct FeaturePoint {
    KernelConfig partial;
    const PipelineEntry* entry = nullptr;
};

/// All points of the rows that apply to (type, hdim), rows in table order.
std::vector<FeaturePoint> feature_points(const ForwardTables& tables, KernelFamily family, DataType type,
                                         HeadDims hdim, MaskVocabulary masks, bool extended);

/// The mask classes of a vocabulary in upstream's order.
std::span<const MaskClass> mask_values(MaskVocabulary vocabulary);

template <class Visit>
void walk_forward(const ForwardGroup& group, KernelFamily family, const Request& request, bool extended,
                  Visit&& visit) {
    const ForwardTables& tables = group.tables;
    for (const DataType type : tables.data_types)
        for (const TileRow& row : tables.tiles) {
            if (row.data_type != type) continue;
            std::vector<FeaturePoint> points =
                feature_points(tables, family, type, row.hdim, request.masks, extended);
            for (const Mode mode : tables.modes)
                for (const TileEntry& tile : row.tiles) {
                    if (tile.only_custom_factory && !request.custom_factory) continue;
                    for (FeaturePoint& point : points) {
                        KernelConfig& candidate = point.partial;
                        candidate.arch = group.name;
                        candidate.signature.mode = mode;
                        candidate.algorithm.tile = tile.block;
                        candidate.algorithm.wave = tile.wave;
                        candidate.algorithm.warp = tile.warp;
                        candidate.algorithm.block_per_cu = tile.block_per_cu;
                        candidate.algorithm.max_seq_len_q = tile.max_seq_q;
                        candidate.algorithm.constraint = tile.constraint;
                        candidate.algorithm.selection_rank = point.entry->rank + tile.rank;
                        for (const std::int32_t page : tables.page_sizes) {
                            candidate.signature.page_size = page;
                            visit(static_cast<const KernelConfig&>(candidate), Origin{&tile, point.entry});
                        }
                    }
                }
        }
}

/// Backward: `visit(trait, tile)`. The trait is the dq_dk_dv kernel whose `pad.s` is the padding of the two
/// one-dimensional kernels.
template <class Visit>
void walk_backward(const BackwardGroup& group, const Request& request, Visit&& visit) {
    constexpr std::array<std::int8_t, 3> head_pads{0, 8, 1};
    constexpr std::array truths_first{true, false};
    KernelConfig trait;
    Signature& s = trait.signature;
    Algorithm& a = trait.algorithm;
    trait.arch = group.name;
    s.family = KernelFamily::bwd_dq_dk_dv;
    a.pipeline = Pipeline::bwd;
    a.pad.sk = true;
    for (const DataType type : group.tables.data_types)
        for (const bool trload : truths_first)
            for (const BackwardTile& tile : group.tables.tiles) {
                if (tile.data_type != type || tile.trload != trload) continue;
                s.data_type = type;
                s.hdim_q = s.hdim_v = tile.hdim;
                a.tile = tile.block;
                a.wave = tile.wave;
                a.warp = tile.warp;
                a.block_per_cu = tile.block_per_cu;
                a.max_seq_len_q = tile.max_seq_q;
                a.use_trload = trload;
                for (const Mode mode : {Mode::batch, Mode::group})
                    for (const MaskClass mask : mask_values(request.masks))
                        for (const auto& bias : EnumTable<BiasType>::names)
                            for (const bool dbias : truths_first)
                                for (const auto& dropout : EnumTable<DropoutVariant>::names)
                                    for (const bool pad_s : {false, true})
                                        for (const std::int8_t pad_d : head_pads)
                                            for (const std::int8_t pad_dv : head_pads)
                                                for (const bool deterministic : truths_first) {
                                                    s.mode = mode;
                                                    s.mask = mask;
                                                    s.bias = bias.value;
                                                    s.has_dbias = dbias;
                                                    s.has_dropout = dropout.value != DropoutVariant::none;
                                                    s.is_store_randval =
                                                        dropout.value ==
                                                            DropoutVariant::dropout_wg32_storerandval ||
                                                        dropout.value ==
                                                            DropoutVariant::dropout_wg16_storerandval;
                                                    s.is_deterministic = deterministic;
                                                    a.dropout_variant = dropout.value;
                                                    a.pad.s = pad_s;
                                                    a.pad.d = pad_d;
                                                    a.pad.dv = pad_dv;
                                                    visit(static_cast<const KernelConfig&>(trait), tile);
                                                }
            }
}

/// Batch prefill: every kernel that reads pages smaller than a key tile through a descriptor has a twin with
/// 64-bit addresses, listed right behind it.
bool has_global_load_twin(const KernelConfig& config);
KernelConfig global_load_twin_of(const KernelConfig& config);

/// The three kernels that a trait names.
KernelConfig dot_do_o_of(const KernelConfig& trait);
KernelConfig dq_dk_dv_of(const KernelConfig& trait);
KernelConfig convert_dq_of(const KernelConfig& trait);

} // namespace fmha::catalog::tables
