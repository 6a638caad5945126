#include "kernels/generator/access_waits.hpp"

#include "dispatcher/types/error.hpp"
#include "kernels/generator/scan.hpp"

#include <fmt/format.h>

namespace fmha::generator {
namespace {

/// The number that is the instruction's only operand.
std::int64_t left_of(const Instruction& instruction) {
    const auto left = machine_number(instruction.operands);
    if (!left)
        throw InputError(fmt::format("{} {}: expected a number", instruction.mnemonic, instruction.operands));
    return *left;
}

} // namespace

AccessWait access_wait_of(const Instruction& instruction) {
    const std::string_view name = instruction.mnemonic, operands = instruction.operands;
    AccessWait wait;
    if (name == "s_waitcnt") {
        wait.memory = number_behind(operands, "vmcnt(");
        wait.lds = number_behind(operands, "lgkmcnt(");
    } else if (name == "s_wait_loadcnt") {
        wait.memory = left_of(instruction);
    } else if (name == "s_wait_dscnt") {
        wait.lds = left_of(instruction);
    } else if (name == "s_wait_loadcnt_dscnt") {
        const std::int64_t both = left_of(instruction);
        wait.memory = both >> 8;
        wait.lds = both & 0x3F;
    }
    return wait;
}

} // namespace fmha::generator
