#pragma once

#include "dispatcher/types/args.hpp"
#include "dispatcher/types/kernel_instance.hpp"

namespace fmha {

/// Throws ProblemError for lengths, tables of pages, sink logits and descales in host memory that break a rule, and InputError for
/// an absent array that says where descales lie: kernels and reference read there.
void check_contents(const Invocation& arguments);

/// Where the scale blocks of the entries of a packed batch begin. Throws InputError. Reads no memory.
void require_block_starts(const FwdArgs& args);

} // namespace fmha
