#pragma once

#include "dispatcher/types/kernel_instance.hpp"

#include <cstdint>

namespace fmha {

/// Outputs that a caller may ask for. No two elements of one lie in the same place, because blocks of a launch would race for it (L-4), as far as
/// two strides show it. Gradients of sink logits are wanted only where there are sink logits. Looks at strides and extents, not
/// into memory. `max_seqlen_k` bounds the keys of an entry of a packed batch, 0 = not known. Throws ProblemError for a place of two elements,
/// InputError for a gradient without its input.
void check_outputs(const Invocation& arguments, std::int64_t max_seqlen_k);

} // namespace fmha
