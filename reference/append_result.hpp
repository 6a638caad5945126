#pragma once

#include "reference/append.hpp"

namespace fmha::reference {

/// Throws the errors of `append`.
void require_appendable(const AppendKvArgs& args);

} // namespace fmha::reference
