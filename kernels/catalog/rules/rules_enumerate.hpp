#pragma once

#include "kernels/catalog/rules/rules_tables.hpp"

namespace fmha::catalog::audit {

/// Streams the kernels of one variant of `claim` or `stored` in emission order. An empty data type list of
/// the selection keeps nothing, as upstream has it here; block_per_cu is not swept. Batch prefill of `claim`,
/// whose order of modes is not known, has modes outside features.
void enumerate_rules(const RulesTables& tables, const Selection& selection, const CandidateSink& sink);

/// The rules of the forward tile check that `tile` breaks for `pipeline`.
RuleBits forward_tile_failures(const RulesTables& tables, DataType type, HeadDims head, Pipeline pipeline,
                               const Tile& tile);

} // namespace fmha::catalog::audit
