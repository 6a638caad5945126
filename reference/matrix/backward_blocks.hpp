#pragma once

#include "reference/backward.hpp"

namespace fmha::reference {

/// W-1 to W-10 as products of matrices, block by block of rows and keys, in binary64. Same contract as `backward`; written
/// without the parts that the row form uses.
Gradients backward_in_matrix_form(const BwdArgs& args, const GradientRequest& request,
                                  const GradientOptions& options);

} // namespace fmha::reference
