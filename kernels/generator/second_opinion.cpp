#include "kernels/generator/second_opinion.hpp"

#include "dispatcher/system/files.hpp"
#include "dispatcher/system/process.hpp"
#include "kernels/generator/scan.hpp"

#include <fmt/format.h>

#include <chrono>

namespace fmha::generator {
namespace {

constexpr int iterations = 4;

/// LLVM counts passes of four clock cycles on CDNA. Of RDNA it has latencies only, and with gfx950's loops it does not end.
bool has_model(const ArchName& arch) {
    return arch.view() == "gfx90a" || arch.view() == "gfx942";
}
constexpr std::chrono::seconds report_time{10};
constexpr std::int64_t clocks_a_pass = 4;

bool left_out(const Instruction& instruction) {
    return instruction.flow != Flow::next || instruction.mnemonic.starts_with("s_barrier");
}

} // namespace

std::filesystem::path analyzer_of(const Compiler& compiler) {
    const std::filesystem::path disassembler = disassembler_of(compiler);
    if (disassembler.empty()) return {};
    const auto analyzer = disassembler.parent_path() / "llvm-mca";
    return std::filesystem::exists(analyzer) ? analyzer : std::filesystem::path();
}

std::int64_t second_opinion(std::span<const Instruction> path, const ArchName& arch,
                            const std::filesystem::path& analyzer) {
    if (analyzer.empty() || !has_model(arch)) return 0;
    std::string text;
    for (const Instruction& instruction : path)
        if (!left_out(instruction))
            text += fmt::format("{} {}\n", instruction.mnemonic, instruction.operands);
    const system::TemporaryDirectory folder;
    const auto file = folder.path() / "loop.s";
    system::write_file(file, text);
    const auto said =
        system::run_process({analyzer.string(), "-mtriple=amdgcn", fmt::format("-mcpu={}", arch.view()),
                             fmt::format("-iterations={}", iterations), "-instruction-info=0",
                             "-resource-pressure=0", file.string()},
                            {.time = report_time});
    const auto rest = behind(said.out, "Total Cycles:", "\n");
    if (said.timed_out || said.exit_code != 0 || !rest) return 0;
    const auto digits = rest->find_first_not_of(' ');
    if (digits == std::string_view::npos) return 0;
    return leading_number(rest->substr(digits)).value_or(0) * clocks_a_pass / iterations;
}

} // namespace fmha::generator
