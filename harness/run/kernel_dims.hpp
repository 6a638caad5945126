#pragma once

#include "harness/cases/shape_matrix.hpp"

#include <string>

namespace fmha::harness {

/// Head dimensions of the house catalogue's forward kernels for `arch`, which shape matrices expect to find. Throws
/// InputError for an unknown architecture.
KernelDims forward_kernel_dims(const std::string& arch);

} // namespace fmha::harness
