#pragma once

#include "dispatcher/types/kernel_instance.hpp"

namespace fmha {

/// Where the tensors of a call and its sink logits lie. Their strides lead to places that memory can have (L-1), and elements lie at
/// multiples of their size. Memory that a call writes is none that it reads, nor that of another of its outputs (L-4), as far as `overlap`
/// tells; the caches and queries of append-KV, which are changed in place, are outputs here. Descales, slopes and arrays of lengths are not
/// looked at. Pages and slots count as far as they are known to exist. How many rows a packed batch has is read where
/// `lengths_readable`, that is in host memory; elsewhere its first row counts. Throws ProblemError, and InputError for an address.
void check_memory(const Invocation& arguments, bool lengths_readable);

} // namespace fmha
