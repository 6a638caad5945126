#pragma once

#include "reference/combine.hpp"

#include <span>

namespace fmha::reference {

/// S-4 as products: the weights of a row are one vector, its partial results a matrix with one row a split. Same contract
/// as `combine`.
CombinedRows combine_in_matrix_form(const SplitKvArgs& args, std::span<const RowId> rows,
                                    const ForwardOptions& options);

} // namespace fmha::reference
