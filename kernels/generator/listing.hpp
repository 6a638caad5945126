#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Disassembled kernels, from the words of disassemblers.
namespace fmha::generator {

/// Where control goes after an instruction.
enum class Flow : std::uint8_t {
    next,
    jump,   ///< to the target
    branch, ///< to the target or on
    end,
};

/// The control bits of an instruction of NVIDIA's: the cycles that the next one stays behind it, and the scoreboards that it waits for (a
/// bit each). It sets one until its results have arrived, and one until its operands have been read; −1: none.
struct Scoreboards {
    std::uint8_t stall = 0, waits = 0;
    std::int8_t written = -1, read = -1;
};

struct Instruction {
    std::uint64_t address = 0;
    std::string mnemonic, operands;
    Flow flow = Flow::next;
    std::uint64_t target = 0; ///< of a jump or a branch
    Scoreboards scoreboards{};
    /// Of an access of LDS the cycles that conflicts of banks cost; −1: not known.
    std::int64_t conflicts = -1;
};

using Listing = std::map<std::string, std::vector<Instruction>, std::less<>>;

/// Text without blanks at its ends.
std::string_view trimmed(std::string_view text);

/// The operands of an instruction of AMD's, without what stands behind the last one, such as an offset.
std::vector<std::string_view> operands_of(std::string_view operands);

/// Functions of the output of `llvm-objdump -d` for AMD. Throws InputError for a branch without a target; `where` names the text.
Listing amd_listing(std::string_view text, const std::string& where);

/// The same of `cuobjdump -sass`.
Listing nvidia_listing(std::string_view text, const std::string& where);

} // namespace fmha::generator
