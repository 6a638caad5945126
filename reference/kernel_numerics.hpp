#pragma once

#include "dispatcher/types/element.hpp"
#include "dispatcher/types/numerics.hpp"

namespace fmha::reference {

/// The declaration of a kernel that accumulates in IEEE fp32, casts un-normalised P to the tag's P type with
/// a pre-scale of `p_prescale`, and rounds once to the O type.
Numerics kernel_numerics(const ElementTypes& types, double p_prescale = 1.0);

} // namespace fmha::reference
