#pragma once

#include "harness/families/family.hpp"

namespace fmha::harness {

const Family& fwd_family();
const Family& splitkv_family();
const Family& appendkv_family();
const Family& pagedkv_family();
const Family& bwd_family();
const Family& prefill_family();

} // namespace fmha::harness
