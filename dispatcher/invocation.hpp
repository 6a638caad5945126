#pragma once

#include "dispatcher/types/args.hpp"
#include "dispatcher/types/problem.hpp"

namespace fmha {

/// The problem that a call poses: its traits, which are a Signature as they stand, plus sizes and the presence of
/// pointers. Flags that a pointer or value decides (LSE, random bytes, sinks, dropout, soft-cap, bias) come from
/// the arguments, of any of the six APIs. Not validated.
template <class Args>
Problem problem_of(const Signature& traits, const Args& args, const ArchName& arch);

/// Arguments that pose this problem, with a placeholder address wherever a pointer must be present. The caller
/// sets pointers, strides and values. `problem_of` gives the problem back.
FwdArgs skeleton_of(const Problem& problem);

} // namespace fmha
