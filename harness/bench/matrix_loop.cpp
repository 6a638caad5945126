#include "harness/bench/matrix_loop.hpp"

#include "dispatcher/system/files.hpp"
#include "dispatcher/system/process.hpp"
#include "dispatcher/types/error.hpp"
#include "kernels/arch/arch.hpp"
#include "kernels/generator/compiler.hpp"
#include "kernels/generator/headers.hpp"
#include "kernels/targets/hip/instruction_names.hpp"
#include "kernels/targets/hip/matrix_loop.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace fmha::harness {
namespace {

using hip_target::InstructionInfo;
using hip_target::MatrixInstruction;

constexpr std::string_view symbol = "fmha_matrix_loop";

/// The largest instruction of the architecture for operands of this type: kernels get nothing faster.
MatrixInstruction largest_instruction(std::string_view arch, ElementType operand) {
    // The table has 8-bit instructions by their OCP names.
    const ElementType known = operand == ElementType::fp8_fnuz   ? ElementType::fp8_ocp
                              : operand == ElementType::bf8_fnuz ? ElementType::bf8_ocp
                                                                 : operand;
    const auto unit = hip_target::matrix_unit(arch);
    MatrixInstruction best = MatrixInstruction::none;
    int most = 0;
    for (int i = 1; i < hip_target::matrix_instructions; ++i) {
        const auto name = static_cast<MatrixInstruction>(i);
        const InstructionInfo info = hip_target::instruction_info(name);
        const int products = info.m * info.n * info.k;
        if (info.operand != known || !hip_target::has_instruction(unit, name) || products <= most) continue;
        if (info.scale_block != 0 && element_bits(operand) > 4)
            continue; // unscaled operands have no use for it
        best = name;
        most = products;
    }
    return best;
}

/// The code object of `source` for the device's architecture.
std::string compiled(const std::string& source, std::string_view arch) {
    const auto archs = arch::ArchSet::built_in();
    const auto compiler =
        generator::find_compiler(archs.at(arch).hardware(), generator::CompilerPlaces::of_environment());
    const system::TemporaryDirectory folder;
    const auto input = folder.path() / "matrix_loop.hip", output = folder.path() / "matrix_loop.o";
    system::write_file(input, source);
    std::vector<std::string> command{compiler.path.string()};
    for (const std::string& flag : generator::compile_flags(compiler, arch)) command.push_back(flag);
    command.insert(command.end(),
                   {"-I" + generator::kernel_root("").string(), input.string(), "-o", output.string()});
    const auto result = system::run_process(command);
    if (result.exit_code != 0)
        throw BuildError(fmt::format("{} did not compile the matrix loop:\n{}", command.front(), result.err));
    return system::read_file(output);
}

Ceiling timed(const loader::Device& device, MatrixInstruction name, const std::string& image) {
    const InstructionInfo info = hip_target::instruction_info(name);
    const loader::Module module(device, image, "the matrix loop");
    const loader::Function function = module.function(std::string(symbol));
    const std::int32_t units = std::max(device.properties().compute_units, 1);
    // Two blocks of eight waves (four on wave64) occupy every unit of every architecture.
    const auto blocks = static_cast<std::uint32_t>(2 * units);
    const loader::LaunchShape shape{blocks, hip_target::matrix_loop_threads, 0};
    const loader::DeviceBuffer out(device,
                                   std::size_t{blocks} * hip_target::matrix_loop_threads * sizeof(float));
    const loader::DeviceStream stream(device);
    loader::Event start(device), stop(device);
    hip_target::MatrixLoopArgs args{reinterpret_cast<float*>(out.data()), 1024};
    const auto seconds = [&] {
        start.record(stream);
        function.launch(shape, &args, stream.handle());
        stop.record(stream);
        stream.synchronise();
        return std::max(stop.seconds_since(start), 1e-9);
    };
    seconds();
    // About 20 ms a launch: long enough for the clocks of sustained work.
    const double one = seconds();
    args.repeats = static_cast<std::int32_t>(std::clamp(1024.0 * 20e-3 / one, 1024.0, 1e9));
    double best = seconds();
    for (int n = 0; n < 4; ++n) best = std::min(best, seconds());
    const double waves = static_cast<double>(blocks) * hip_target::matrix_loop_threads / info.wave_size;
    return {waves * hip_target::matrix_loop_flops(info, args.repeats) / best,
            fmt::format("{} on registers, {} waves", to_string(name), waves)};
}

} // namespace

std::string matrix_loop_source(std::string_view arch, ElementType operand) {
    const MatrixInstruction name = largest_instruction(arch, operand);
    if (name == MatrixInstruction::none)
        throw UnsupportedInvocation(fmt::format("{} has no matrix instruction for {} that kernels here use",
                                                arch, to_string(operand)));
    return fmt::format("#include \"kernels/targets/hip/matrix_loop.hpp\"\n\nFMHA_MATRIX_LOOP({}, {})\n",
                       symbol, to_string(name));
}

Ceiling time_matrix_loop(const loader::Device& device, ElementType operand) {
    const std::string& arch = device.properties().arch;
    try {
        const std::string image = compiled(matrix_loop_source(arch, operand), arch);
        return timed(device, largest_instruction(arch, operand), image);
    } catch (const DeviceLost&) {
        throw;
    } catch (const Error& error) {
        return {0.0, error.what()};
    }
}

} // namespace fmha::harness
