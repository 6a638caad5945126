#pragma once

#include "dispatcher/types/args.hpp"
#include "harness/gates/outputs.hpp"

namespace fmha::harness {

/// A copy of what a forward kernel had to write: "o", and where `args` has them "lse" and "randval", host memory. Random
/// bytes at positions that the mask hides are not outputs (D-7) and are stored as 0.
Outputs fwd_outputs(const FwdArgs& args);

} // namespace fmha::harness
