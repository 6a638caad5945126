#pragma once

#include "reference/matrix/decode.hpp"

/// The products of the matrix oracles. Eigen's kernels for products are the dearest of its templates to compile, so they are instantiated once,
/// for rows that follow one another at any distance.
namespace fmha::reference::matrix {

/// to = a bᵀ
void multiply_transposed(Block to, const ConstBlock& a, const ConstBlock& b);

/// to += a b
void add_product(Block to, const ConstBlock& a, const ConstBlock& b);

/// to += aᵀ b
void add_transposed_product(Block to, const ConstBlock& a, const ConstBlock& b);

} // namespace fmha::reference::matrix
