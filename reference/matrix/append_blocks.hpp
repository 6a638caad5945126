#pragma once

#include "reference/append.hpp"

namespace fmha::reference {

/// Section 18 in blocks: the rows of one (entry, head) are two matrices, the first and the second channels of all pairs, which
/// the matrices of their angles turn into two others; keys go to the cache in runs of one page. Same contract as `append`.
AppendedRows append_in_matrix_form(const AppendKvArgs& args);

} // namespace fmha::reference
