#pragma once

#include "reference/forward.hpp"

namespace fmha::reference {

/// A result with every table that `options` asks for in its size, filled with the values of a row that sees
/// nothing.
ForwardRows empty_result(const FwdArgs& args, std::span<const RowId> rows, const ForwardOptions& options);

} // namespace fmha::reference
