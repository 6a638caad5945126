#pragma once

#include "harness/bench/timing.hpp"
#include "kernels/loader/device.hpp"

#include <string>

namespace fmha::harness {

/// FLOP/s that the device reaches with the instruction that its kernels multiply `operand` with: every compute unit full of
/// waves that do nothing but multiply registers. The kernel is compiled now, for this device; a machine without a compiler,
/// or an architecture without the instruction, has no known ceiling, and the result says why.
Ceiling time_matrix_loop(const loader::Device& device, ElementType operand);

/// The source of that kernel, for tests: its symbol is `fmha_matrix_loop`.
std::string matrix_loop_source(std::string_view arch, ElementType operand);

} // namespace fmha::harness
