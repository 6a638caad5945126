#pragma once

#include "dispatcher/types/args/parts.hpp"

namespace fmha {

/// Forward attention over a page pool (section 17).
struct PagedKvArgs {
    Shape shape;
    TensorView q, k, v, o, lse, bias;
    LengthArrays lengths;
    MaskArgs mask;
    ScoreArgs score;
    QuantArgs quant;
    KvPlace place;
};

} // namespace fmha
