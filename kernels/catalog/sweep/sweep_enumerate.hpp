#pragma once

#include "kernels/catalog/sweep/tiles.hpp"

namespace fmha::catalog::audit {

/// Streams the kernels of one variant of `sweep` in emission order. An empty data type list of the selection
/// counts as absent; an empty block_per_cu list gives no forward kernel.
///
/// No name occurs twice, so nothing is remembered: within a variant a name shows family, data type, mode,
/// head dimension, tile, first warp tile, paddings and every feature that a product varies; the tables refuse
/// repeated entries; the selection holds each block_per_cu once; and the numbers of a tile that are derived
/// (n1, k1, k0max, waves) follow from those that are shown.
void enumerate_sweep(const SweepTables& tables, const Selection& selection, const CandidateSink& sink);

/// The exhaustive mode: products without constraints, which ignores the receipt. Here two candidates can
/// share a name in bwd_dq_dk_dv only, because its warp tile does not depend on the forward warp tile that the
/// tile loop runs over; the second of two equal block tiles, which are neighbours, is left out as upstream's
/// de-duplication does.
void enumerate_exhaustive(const SweepTables& tables, const Selection& selection, const CandidateSink& sink);

/// Data types of the architecture that the selection keeps, in name order, with the rules that remove them.
struct SelectedType {
    DataType type;
    RuleBits failed;
};
std::vector<SelectedType> selected_types(const SweepTables& tables, const Selection& selection);

/// Head dimensions of a data type, in file order.
std::span<const HeadDims> heads_of(const SweepTables& tables, DataType type);

/// Writes the pair and says whether the selection's restriction keeps it.
RuleBits set_head(const Selection& selection, HeadDims head, KernelConfig& config);

} // namespace fmha::catalog::audit
