#include "kernels/generator/access_waits.hpp"

#include "kernels/generator/scan.hpp"

#include <string>

namespace fmha::generator {

AccessWait access_wait_of(const Instruction& instruction) {
    const std::string_view name = instruction.mnemonic, operands = instruction.operands;
    AccessWait wait;
    if (name == "s_waitcnt") {
        wait.memory = number_behind(operands, "vmcnt(");
        wait.lds = number_behind(operands, "lgkmcnt(");
    } else if (name == "s_wait_loadcnt" || name == "s_wait_dscnt") {
        const auto hexadecimal = operands.starts_with("0x");
        const std::int64_t left = std::stoll(instruction.operands, nullptr, hexadecimal ? 16 : 10);
        (name == "s_wait_dscnt" ? wait.lds : wait.memory) = left;
    } else if (name == "s_wait_loadcnt_dscnt") {
        const std::int64_t both = std::stoll(instruction.operands, nullptr, 16);
        wait.memory = both >> 8;
        wait.lds = both & 0x3F;
    }
    return wait;
}

} // namespace fmha::generator
