// One multiplication, a kernel for every instruction. `probes.h` comes from the test: a PROBE line per instruction.
#include "kernels/targets/hip/instruction.hpp"
#include "tests/hip_target/instructions/probe_args.hpp"
#if defined(__HIP__)
#include "kernels/targets/hip/amd/machine.hpp"
#else
#include "kernels/targets/hip/nvidia/machine.hpp"
#endif

namespace {

using namespace fmha;
using namespace fmha::hip_target;

template <MatrixInstruction name>
__attribute__((device)) inline void multiply(const test::MultiplyArgs& args) {
    constexpr InstructionInfo info = instruction_info(name);
    constexpr int bits = element_bits(info.operand), scales = info.scale_block != 0 ? 1 : 0;
    constexpr int a_words = info.a_elements * bits / 32 + scales, b_words = info.b_elements * bits / 32 + scales;
#if defined(__HIP__)
    using Machine = amd::Machine<info.wave_size, 16>;
#else
    using Machine = nvidia::Machine<info.wave_size>;
#endif
    Machine machine;
    typename Machine::template Registers<std::uint32_t, a_words> a;
    typename Machine::template Registers<std::uint32_t, b_words> b;
    typename Machine::template Registers<float, info.c_elements> c;
    machine.each([&](int lane) {
        for (int w = 0; w < a_words; ++w) a.at(lane, w) = args.a[lane * a_words + w];
        for (int w = 0; w < b_words; ++w) b.at(lane, w) = args.b[lane * b_words + w];
        for (int r = 0; r < info.c_elements; ++r) c.at(lane, r) = args.c[lane * info.c_elements + r];
    });
    machine.mma(name, c, 0, a, 0, b, 0);
    machine.each([&](int lane) {
        for (int r = 0; r < info.c_elements; ++r) args.c[lane * info.c_elements + r] = c.at(lane, r);
    });
}

} // namespace

#define PROBE(name)                                                                                          \
    extern "C" __attribute__((global)) void multiply_##name(const fmha::hip_target::test::MultiplyArgs args) {                         \
        multiply<MatrixInstruction::name>(args);                                                             \
    }
#include "probes.h"
