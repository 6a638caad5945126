#pragma once

#include "kernels/catalog/rule_set.hpp"

namespace fmha::catalog::audit {

/// Rule set `claim`: the list behind the number that upstream's documents quote. Its batch prefill in both
/// modes is inferred from that number; no stored state of upstream emits it.
const RuleSetOps& claim_ops();

/// Rule set `stored`: the list of the hand-kept tables as they were stored last.
const RuleSetOps& stored_ops();

} // namespace fmha::catalog::audit
