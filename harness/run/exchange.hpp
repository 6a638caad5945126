#pragma once

#include "harness/data/fwd_tensors.hpp"
#include "harness/npy/npy.hpp"

#include <filesystem>
#include <string>
#include <vector>

/// Tensors in and out as `.npy` files, so that kernels written anywhere can be judged. Names, shapes and dtypes are those
/// of cases/README.md.
namespace fmha::reference {
struct ForwardRows;
}

namespace fmha::harness {

/// The extents of a tensor's file, in memory order without padding; packed fp4 counts bytes in its last axis.
std::vector<std::int64_t> npy_shape(const TensorLayout& layout);

/// Reads q, k, v and whatever else the case needs (bias, *_descale, alibi_slopes, sink_logits) from `folder` into
/// `tensors`. Throws InputError that names the file, what it has and what is allowed: missing, another dtype or shape, NaN
/// inside a logical range.
void read_inputs(const std::filesystem::path& folder, FwdTensors& tensors);

/// Reads o, and lse and randval when the case has them.
void read_outputs(const std::filesystem::path& folder, FwdTensors& tensors);

/// Writes the inputs that `read_inputs` reads.
void write_inputs(const std::filesystem::path& folder, FwdTensors& tensors);

/// Writes what the reference says: o and lse as float64 before any rounding (o times scale_o), randval as bytes. Rows
/// that the reference does not have are NaN, positions that the mask hides 0.
void write_reference(const std::filesystem::path& folder, FwdTensors& tensors,
                     const reference::ForwardRows& rows);

} // namespace fmha::harness
