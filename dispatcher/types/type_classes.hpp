#pragma once

#include "dispatcher/types/enumerations.hpp"

/// Classes of data types that rules speak of.
namespace fmha {

/// Whether the elements of `type` come with scales of blocks of 32 (T-2, Q-6).
constexpr bool is_micro_scaled(DataType type) {
    return type == DataType::mxfp8 || type == DataType::mxfp4;
}

/// Floating point of 16 bits.
constexpr bool is_half(DataType type) {
    return type == DataType::fp16 || type == DataType::bf16;
}

} // namespace fmha
