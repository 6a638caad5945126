#pragma once

#include "reference/matrix/decode.hpp"
#include "reference/table.hpp"

/// Results as Eigen sees them.
namespace fmha::reference::matrix {

inline Eigen::Map<Eigen::RowVectorXd> line_of(Table& table, Eigen::Index row) {
    return {table.data() + row * table.cols(), table.cols()};
}

inline Eigen::Map<Matrix> lines_of(Table& table, Eigen::Index first, Eigen::Index count) {
    return {table.data() + first * table.cols(), count, table.cols()};
}

} // namespace fmha::reference::matrix
