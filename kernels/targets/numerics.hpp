#pragma once

#include "dispatcher/types/element.hpp"
#include "dispatcher/types/kernel_config.hpp"
#include "dispatcher/types/numerics.hpp"

/// The statement of every target about its arithmetic, in one vocabulary.
namespace fmha::targets {

/// The part of the declaration that follows from the types alone: O's and P's roundoff, floor and pre-scale. The 8-bit
/// flavour follows from the configuration's architecture (T-1).
Numerics storage_numerics(const KernelConfig& config);

/// The whole declaration of a kernel without matrix products, which computes in IEEE fp32: no P, and weights that vanish
/// where the exponential does.
Numerics row_numerics(const KernelConfig& config);

} // namespace fmha::targets
