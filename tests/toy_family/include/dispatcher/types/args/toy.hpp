#pragma once

#include "dispatcher/types/args/parts.hpp"
#include "dispatcher/types/fields.hpp"

namespace fmha {

/// Arguments of the toy API: O = G · Q with G query heads a KV head.
struct ToyArgs {
    Shape shape;
    TensorView q, o; ///< (b, h, row, channel), hdim_q channels
    LengthArrays lengths;
};
FMHA_FIELDS(ToyArgs, shape, q, o, lengths)

} // namespace fmha
