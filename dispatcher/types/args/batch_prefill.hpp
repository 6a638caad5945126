#pragma once

#include "dispatcher/types/args/parts.hpp"

namespace fmha {

/// Forward attention of packed queries over a page pool in one of two layouts (section 19).
struct BatchPrefillArgs {
    Shape shape;
    TensorView q, k, v, o, lse, bias, randval;
    LengthArrays lengths;
    MaskArgs mask;
    ScoreArgs score;
    DropoutArgs dropout;
    QuantArgs quant;
    KvPlace place;
};

} // namespace fmha
