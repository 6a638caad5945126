#pragma once

#include "reference/attention.hpp"

#include <span>

namespace fmha::reference {

/// Forward attention as products of matrices, block by block of rows and keys, in binary64. Same contract as
/// `forward`; written without the parts that the row oracle uses.
ForwardRows forward_in_matrix_form(const AttentionArgs& args, std::span<const RowId> rows,
                                   const ForwardOptions& options);

} // namespace fmha::reference
