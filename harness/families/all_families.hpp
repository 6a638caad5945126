#pragma once

#include "harness/families/family.hpp"

namespace fmha::harness {

/// One a row of the table of APIs: `fwd_family()` and so on, each in a file of its own.
#define FMHA_FAMILY(name, ...) const Family& name##_family();
FMHA_API_FAMILIES(FMHA_FAMILY)
#undef FMHA_FAMILY

} // namespace fmha::harness
