#include "reference/matrix/product.hpp"

namespace fmha::reference::matrix {

void multiply_transposed(Block to, const ConstBlock& a, const ConstBlock& b) {
    to.noalias() = a * b.transpose();
}

void add_product(Block to, const ConstBlock& a, const ConstBlock& b) {
    to.noalias() += a * b;
}

void add_transposed_product(Block to, const ConstBlock& a, const ConstBlock& b) {
    to.noalias() += a.transpose() * b;
}

} // namespace fmha::reference::matrix
