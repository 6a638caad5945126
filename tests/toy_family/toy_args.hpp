#pragma once

#include "dispatcher/types/args.hpp"
#include "dispatcher/types/fields.hpp"

namespace fmha {

/// Arguments of the toy API: O = factor · Q.
struct ToyArgs {
    Shape shape;
    TensorView q, o; ///< (b, h, row, channel), hdim_q channels
    LengthArrays lengths;
    float factor = 1.0F;
};
FMHA_FIELDS(ToyArgs, shape, q, o, lengths, factor)

} // namespace fmha
