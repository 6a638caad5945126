// Products of a warp group, by the functions that kernels multiply with: a kernel for every number of columns and type.
#include "kernels/targets/hip/nvidia/team_machine.hpp"
#include "tests/hip_target/instructions/group_probe_args.hpp"

namespace {

using namespace fmha;
using namespace fmha::hip_target;
using test::GroupProductArgs;

template <int n, ElementType type>
__device__ void multiply(const GroupProductArgs& args) {
    constexpr int count = n / 2, threads = 128, depth = 16, rows = 64, eight_lines = 1024, unused = 16;
    const nvidia::TeamMachine<40, 232> machine(args.launch);
    const int thread = static_cast<int>(threadIdx.x);
    for (int word = thread; word < args.lds_bytes / 4; word += threads)
        reinterpret_cast<std::uint32_t*>(nvidia::team_lds)[word] = args.lds[word];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    nvidia::RegisterArray<float, count> d;
    nvidia::RegisterArray<std::uint32_t, GroupProductArgs::words_a> a;
#pragma unroll
    for (int r = 0; r < count; ++r) d.value[r] = args.d[thread * count + r];
#pragma unroll
    for (int w = 0; w < GroupProductArgs::words_a; ++w)
        a.value[w] = args.a[thread * GroupProductArgs::words_a + w];
    machine.fence_products(a);
    machine.fence_products(d);
    if (args.a_in_registers != 0) {
        const MatrixDescriptor b =
            machine.descriptor(args.b, SwizzledTile::block_bytes(args.b_lines), eight_lines);
#pragma unroll
        for (int k = 0; k < GroupProductArgs::most_steps; ++k)
            if (k < args.steps)
                machine.multiply_registers(type, d, a, 4 * k, b + k * depth * SwizzledTile::line_bytes, true);
    } else {
        const MatrixDescriptor left = machine.descriptor(0, unused, eight_lines),
                               right = machine.descriptor(args.b, unused, eight_lines);
        for (int k = 0; k < args.steps; ++k) {
            const int block = k * depth / SwizzledTile::block_elements(type),
                      in_line = k * depth % SwizzledTile::block_elements(type) * 2;
            machine.multiply_lds(type, d, left + (block * SwizzledTile::block_bytes(rows) + in_line),
                                 right + (block * SwizzledTile::block_bytes(args.b_lines) + in_line), true);
        }
    }
    machine.commit_products(d);
    machine.wait_products(0, d);
#pragma unroll
    for (int r = 0; r < count; ++r) args.d[thread * count + r] = d.value[r];
}

} // namespace

#define PROBE(n, type)                                                                                       \
    extern "C" __global__ void __launch_bounds__(128, 1)                                                     \
        multiply_##n##_##type(const __grid_constant__ fmha::hip_target::test::GroupProductArgs args) {       \
        multiply<n, ElementType::type>(args);                                                                \
    }
#define PROBES(n) PROBE(n, fp16) PROBE(n, bf16)
PROBES(16)
PROBES(32)
PROBES(48)
PROBES(64)
PROBES(80)
PROBES(96)
PROBES(112)
PROBES(128)
PROBES(144)
PROBES(160)
PROBES(176)
PROBES(192)
PROBES(208)
PROBES(224)
PROBES(240)
PROBES(256)
