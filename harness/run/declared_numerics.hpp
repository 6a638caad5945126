#pragma once

#include "kernels/targets/numerics.hpp"
#include "reference/forward.hpp"

namespace fmha::harness {

/// What a target declares about the arithmetic of a kernel, in the terms of the reference's bounds.
reference::KernelNumerics in_reference_terms(const targets::Numerics& declared);

} // namespace fmha::harness
