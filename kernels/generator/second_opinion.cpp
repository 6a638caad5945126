#include "kernels/generator/second_opinion.hpp"

#include "dispatcher/system/files.hpp"
#include "dispatcher/system/process.hpp"
#include "kernels/generator/scan.hpp"

#include <fmt/format.h>

#include <chrono>

namespace fmha::generator {
namespace {

constexpr int iterations = 4;

/// LLVM counts passes of four clock cycles on CDNA. Of RDNA it has latencies only.
bool has_model(const ArchName& arch) {
    return arch.view() == "gfx90a" || arch.view() == "gfx942" || arch.view() == "gfx950";
}
/// A loop takes it a tenth of a second.
constexpr std::chrono::seconds report_time{2};
constexpr std::int64_t clocks_a_pass = 4;

bool left_out(const Instruction& instruction) {
    return instruction.flow != Flow::next || instruction.mnemonic.starts_with("s_barrier");
}

/// `instruction` with one result. LLVM's machine in order waits for ever behind an instruction that writes a carry beside its result
/// (LLVM 22: an mfma that reads what LDS gives, behind v_mad_u64_u32), so the same operation without a carry stands in its place.
std::string with_one_result(const Instruction& instruction) {
    const std::string_view mnemonic = instruction.mnemonic;
    const auto carry = mnemonic.find("_co_");
    const auto operands = operands_of(instruction.operands);
    // result, carry, two operands, and a third one of some
    if (operands.size() >= 4) {
        if (carry != std::string_view::npos) {
            auto operation = mnemonic.substr(0, carry);
            for (const std::string_view with_carry_in : {"v_addc", "v_subb"})
                if (operation == with_carry_in) operation.remove_suffix(1);
            return fmt::format("{}{} {}, {}, {}", operation, mnemonic.substr(carry + 3), operands[0],
                               operands[2], operands[3]);
        }
        if (mnemonic.starts_with("v_mad_u64_u32") || mnemonic.starts_with("v_mad_i64_i32"))
            if (const auto lower = number_behind(operands[0], "v["))
                return fmt::format("v_mul_lo_u32 v{}, {}, {}", *lower, operands[2], operands[3]);
    }
    return fmt::format("{} {}", mnemonic, instruction.operands);
}

} // namespace

std::filesystem::path analyzer_of(const Compiler& compiler) {
    const std::filesystem::path disassembler = disassembler_of(compiler);
    if (disassembler.empty()) return {};
    const auto analyzer = disassembler.parent_path() / "llvm-mca";
    return std::filesystem::exists(analyzer) ? analyzer : std::filesystem::path();
}

std::int64_t second_opinion(std::span<const Instruction> path, const ArchName& arch,
                            const std::filesystem::path& analyzer, const std::function<bool()>& stop) {
    if (analyzer.empty() || !has_model(arch)) return 0;
    std::string text;
    for (const Instruction& instruction : path)
        if (!left_out(instruction)) text += with_one_result(instruction) + "\n";
    const system::TemporaryDirectory folder;
    const auto file = folder.path() / "loop.s";
    system::write_file(file, text);
    const auto said =
        system::run_process({analyzer.string(), "-mtriple=amdgcn", fmt::format("-mcpu={}", arch.view()),
                             fmt::format("-iterations={}", iterations), "-instruction-info=0",
                             "-resource-pressure=0", file.string()},
                            {.time = report_time, .stop = stop});
    const auto rest = behind(said.out, "Total Cycles:", "\n");
    if (said.timed_out || said.exit_code != 0 || !rest) return 0;
    const auto digits = rest->find_first_not_of(' ');
    if (digits == std::string_view::npos) return 0;
    return leading_number(rest->substr(digits)).value_or(0) * clocks_a_pass / iterations;
}

} // namespace fmha::generator
