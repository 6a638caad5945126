#pragma once

#include "reference/append.hpp"

namespace fmha::reference {

/// Throws what `append` throws.
void require_appendable(const AppendKvArgs& args);

} // namespace fmha::reference
