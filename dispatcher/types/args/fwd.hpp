#pragma once

#include "dispatcher/types/args/parts.hpp"

namespace fmha {

/// Forward attention.
struct FwdArgs {
    Shape shape;
    TensorView q, k, v, o;
    TensorView lse;     ///< fp32, (b, h, row, 0)
    TensorView bias;    ///< (b, h, row, key); present exactly when bias_type is elementwise
    TensorView randval; ///< uint8, (b, h, row, key); present when random bytes are to be stored
    LengthArrays lengths;
    MaskArgs mask;
    ScoreArgs score;
    DropoutArgs dropout;
    QuantArgs quant;
};

} // namespace fmha
