#pragma once

#include "harness/cases/case.hpp"
#include "kernels/arch/arch.hpp"

#include <string>

namespace fmha::harness {

/// `c` with the number of splits that S-6 chooses on the device of `arch`, when it is a case of split-KV that states none.
/// Throws InputError for an architecture that `archs` lacks.
Case with_device_splits(Case c, const std::string& arch, const arch::ArchSet& archs);

} // namespace fmha::harness
