#pragma once

#include "dispatcher/types/tensor_view.hpp"

#include <array>
#include <cstdint>

namespace fmha {

/// How many (entries, heads, rows, columns) a tensor has.
using TensorExtents = std::array<std::int64_t, 4>;

/// Whether a tensor's strides lead to places that memory can have: within 2^56 bytes. One without elements has none.
bool addressable(const TensorView& view, const TensorExtents& extents);

/// Whether an element of one tensor certainly has a bit in common with an element of the other. Strides may interleave the two in any way.
/// Looks at addresses, not into memory. The search gives up after some thousand steps, which strides that have nothing to do with each other
/// can need, and for tensors that are not addressable; then the answer is no.
bool overlap(const TensorView& one, const TensorExtents& of_one, const TensorView& other,
             const TensorExtents& of_other);

} // namespace fmha
