#pragma once

#include "harness/cases/shape_matrix.hpp"
#include "kernels/arch/arch.hpp"

#include <string>

namespace fmha::harness {

/// Head dimensions of the house catalogue's kernels for `arch` and the main stage of `family`, which shape matrices expect to
/// find. Throws InputError for an unknown architecture.
KernelDims kernel_dims(const std::string& arch, ApiFamily family,
                       const arch::ArchSet& archs = arch::ArchSet::built_in());

} // namespace fmha::harness
