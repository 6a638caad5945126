#pragma once

#include "dispatcher/types/enumerations.hpp"

/// Classes of data types that rules speak of.
namespace fmha {

/// Whether the elements of `type` come with scales of blocks of 32 (T-2, Q-6); V is by column then.
constexpr bool is_micro_scaled(DataType type) {
    return type == DataType::mxfp8 || type == DataType::mxfp4;
}

/// Whether a byte of V holds two keys, so that every entry begins at an even one (T-2).
constexpr bool packs_keys(DataType type) {
    return type == DataType::mxfp4;
}

/// Floating point of 16 bits, for which RoPE exists (V-7).
constexpr bool is_half(DataType type) {
    return type == DataType::fp16 || type == DataType::bf16;
}

/// Whether backward exists for it (20.1).
constexpr bool has_gradients(DataType type) {
    return is_half(type) || type == DataType::fp32;
}

} // namespace fmha
