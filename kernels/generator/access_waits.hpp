#pragma once

#include "kernels/generator/listing.hpp"

#include <cstdint>
#include <optional>

namespace fmha::generator {

/// How many accesses of a kind may be left under way after an instruction of AMD's: "vmcnt(2) lgkmcnt(0)", and s_wait_dscnt 0x1 of
/// RDNA 4. Nothing where it does not wait for them.
struct AccessWait {
    std::optional<std::int64_t> memory, lds;
};
/// Throws InputError for a wait whose number is none.
AccessWait access_wait_of(const Instruction& instruction);

} // namespace fmha::generator
