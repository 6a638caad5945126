#include "reference/matrix/matrix_oracle.hpp"

#include "reference/row/row_oracle.hpp"

namespace fmha::reference {

ForwardRows forward_in_matrix_form(const FwdArgs& args, std::span<const RowId> rows,
                                   const ForwardOptions& options) {
    return forward_row_by_row(args, rows, options);
}

} // namespace fmha::reference
