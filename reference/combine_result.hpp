#pragma once

#include "reference/combine.hpp"

namespace fmha::reference {

/// A result with every table that `options` asks for in its size, filled with the values of a row without keys. Throws
/// the errors of `combine`.
CombinedRows empty_combination(const SplitKvArgs& args, std::span<const RowId> rows,
                               const ForwardOptions& options);

} // namespace fmha::reference
