#pragma once

#include "dispatcher/types/args.hpp"
#include "dispatcher/types/kernel_instance.hpp"
#include "dispatcher/types/problem.hpp"

namespace fmha {

/// The problem that a call poses: its traits, which are a Signature as they stand, plus sizes and the presence of
/// pointers. Flags that a pointer or value decides (LSE, random bytes, sinks, dropout, soft-cap, bias) come from
/// the arguments, of any of the six APIs. Not validated.
template <class Args>
Problem problem_of(const Signature& traits, const Args& args, const ArchName& arch);

/// Throws unless the arguments pose `problem`, for which a kernel was chosen and a workspace sized: ArgumentTypeError for the arguments of
/// another API, InputError that names the first field in which they differ, or a tensor of other elements. `problem` states its
/// number of splits. Not compared is what arguments do not state (`max_seqlen_k`, compute units), lengths that are ignored in group mode
/// (N-2), and alignment beyond what the problem asks for.
void require_posed(const Problem& problem, const Invocation& arguments);

} // namespace fmha
