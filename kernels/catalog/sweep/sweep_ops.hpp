#pragma once

#include "kernels/catalog/rule_set.hpp"

namespace fmha::catalog::audit {

/// Rule set `sweep`: upstream's last enumeration, ranges of block sizes under constraints, and its exhaustive
/// mode (`Request::exhaustive`).
const RuleSetOps& sweep_ops();

} // namespace fmha::catalog::audit
