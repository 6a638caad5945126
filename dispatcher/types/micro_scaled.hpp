#pragma once

#include "dispatcher/types/enumerations.hpp"

namespace fmha {

/// Whether the elements of `type` come with scales of blocks of 32 (T-2, Q-6).
constexpr bool is_micro_scaled(DataType type) {
    return type == DataType::mxfp8 || type == DataType::mxfp4;
}

} // namespace fmha
