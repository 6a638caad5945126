#pragma once

#include "dispatcher/types/kernel_instance.hpp"

namespace fmha {

/// Memory that a call writes is none that it reads, nor that of another of its outputs (L-4); the caches and queries of append-KV, which are
/// changed in place, are outputs here. Asks `overlap` of every two tensors and of sink logits and their gradients; descales, slopes and
/// arrays of lengths are not looked at. Pages and slots count as far as they are known to exist. How many rows a packed batch has is read
/// where `lengths_readable`, that is in host memory; elsewhere its first row counts. Throws ProblemError.
void check_overlaps(const Invocation& arguments, bool lengths_readable);

} // namespace fmha
