// Matrix reads and writes of LDS, by the functions with which kernels transpose tiles.
#include "kernels/targets/hip/nvidia/team_machine.hpp"
#include "tests/hip_target/instructions/matrix_probe_args.hpp"

extern "C" __global__ void __launch_bounds__(128, 1)
    read_and_write(const __grid_constant__ fmha::hip_target::test::MatrixLinesArgs args) {
    using namespace fmha::hip_target;
    using Args = test::MatrixLinesArgs;
    const nvidia::TeamMachine<40, 232> machine(args.launch);
    const int thread = machine.thread();
    auto* const lds = reinterpret_cast<std::uint32_t*>(nvidia::team_lds);
    for (int word = thread; word < Args::lds_bytes / 4; word += Args::threads) lds[word] = args.image[word];
    __syncthreads();
    nvidia::RegisterArray<std::uint32_t, Args::words> words;
    machine.load_matrix(
        words, 0, [&](int of) { return args.reads[of] * Args::line_bytes; }, args.transposed != 0);
    machine.store_matrix(words, 0,
                         [&](int of) { return (Args::threads + args.writes[of]) * Args::line_bytes; });
    __syncthreads();
    for (int w = 0; w < Args::words; ++w) args.registers[thread * Args::words + w] = words.value[w];
    for (int word = thread; word < Args::lds_bytes / 4; word += Args::threads) args.result[word] = lds[word];
}
