#pragma once

#include "kernels/catalog/rule_set.hpp"

namespace fmha::catalog::ck {

/// Rule set `ck`: the list of upstream's 01_fmha generator, name for name and in its order.
const RuleSetOps& ops();

void enumerate(const arch::ArchSet& archs, const Request& request, Sink sink);
std::vector<RuleRow> rule_rows();
Why why(const arch::ArchSet& archs, const Request& request, std::string_view name);

} // namespace fmha::catalog::ck
