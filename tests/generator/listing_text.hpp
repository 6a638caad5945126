#pragma once

#include <cstdint>
#include <string>

/// Listings of a kernel fmha_k as disassemblers write them, of an instruction a line. A label stands on a line of its own ("loop:"), and a jump
/// names it: "s_branch -> loop".
namespace fmha::generator {

/// As llvm-objdump writes it.
std::string amd_text(const std::string& code);

/// The upper half of an instruction's bits: stall, scoreboard that is set (7: none), mask of those that are waited for.
std::uint64_t upper_half(std::uint64_t stall, std::uint64_t sets, std::uint64_t waits);

/// As cuobjdump writes it; behind " ! " may stand the upper half of an instruction's bits.
std::string nvidia_text(const std::string& code);

} // namespace fmha::generator
