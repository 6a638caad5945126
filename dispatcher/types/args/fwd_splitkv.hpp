#pragma once

#include "dispatcher/types/args/parts.hpp"

namespace fmha {

/// Forward attention with the keys of a row divided over blocks, and the kernel that combines them (section 16).
struct SplitKvArgs {
    Shape shape;
    TensorView q, k, v, o, lse, bias;
    LengthArrays lengths;
    MaskArgs mask;
    ScoreArgs score;
    QuantArgs quant;
    KvPlace place;
    Partials partials;
};

} // namespace fmha
