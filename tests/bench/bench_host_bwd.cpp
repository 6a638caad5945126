// Backward attention on the host target against Eigen's float product, measured in the same process.
//
// Shape: batch 1, 4 heads, 1024 x 1024, hdim 128, fp16 in and out, 2 threads; work counted as the five products of the main stage,
// 10·B·H·Sq·Sk·D. All three stages are timed, and the preparation of the workspace.
#include "dispatcher/plan/workspace.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "tests/bench/eigen_yardstick.hpp"
#include "tests/support/dense_problem.hpp"

#include <benchmark/benchmark.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace {

using fmha::BwdArgs;
using fmha::KernelConfig;
using fmha::KernelFamily;

constexpr std::int64_t heads = 4, seqlen = 1024, hdim = 128;
constexpr double work = 10.0 * heads * seqlen * seqlen * hdim;

KernelConfig config_of(KernelFamily family, std::int16_t m0, std::int16_t n0, bool causal) {
    KernelConfig config;
    config.arch = "gfx950";
    fmha::Signature& s = config.signature;
    s.family = family;
    s.data_type = fmha::DataType::fp16;
    s.mask = causal ? fmha::MaskClass::causal : fmha::MaskClass::none;
    s.hdim_q = s.hdim_v = hdim;
    config.algorithm.tile = {.m0 = m0, .n0 = n0, .k0 = 32, .n1 = 128, .k1 = 32, .k0max = 128};
    config.algorithm.pad = {true, true, 8, 8};
    return config;
}

/// The benchmark shape in fp16; any LSE does for the time.
struct Data : fmha::test::DenseProblem<BwdArgs, std::uint16_t> {
    std::vector<float> lse = std::vector<float>(heads * seqlen, 8.0F), d = lse;
    std::vector<std::max_align_t> workspace;
    fmha::BwdWorkspaceLayout layout;

    Data(std::int64_t key_tile, bool causal)
        : DenseProblem({1, heads, heads, seqlen, seqlen, hdim, hdim}, fmha::ElementType::fp16,
                       fmha::bench::half_code) {
        for (fmha::TensorView* view : {&args.o, &args.d_o, &args.dq}) *view = query_tensor(hdim);
        for (fmha::TensorView* view : {&args.dk, &args.dv}) *view = key_tensor(hdim);
        args.lse = {lse.data(), fmha::ElementType::fp32, heads * seqlen, seqlen, 1, 1};
        args.d = args.lse;
        args.d.data = d.data();
        if (causal) args.mask = {fmha::MaskType::top_left, -1, 0, 0};
        fmha::BwdWorkspaceInputs inputs;
        inputs.batch = 1;
        inputs.nhead_q = heads;
        inputs.seqlen_q = inputs.seqlen_k = seqlen;
        inputs.hdim_q = hdim;
        inputs.key_tile = key_tile;
        layout = fmha::bwd_workspace_layout(inputs);
        workspace.resize(static_cast<std::size_t>(layout.size.bytes) / sizeof workspace[0] + 1);
        args.workspace = workspace.data();
    }
};

void backward(benchmark::State& state, std::int16_t m0, std::int16_t n0, bool causal) {
    using enum KernelFamily;
    Data data(n0, causal);
    const std::array stages{config_of(bwd_dot_do_o, m0, n0, causal), config_of(bwd_dq_dk_dv, m0, n0, causal),
                            config_of(bwd_convert_dq, m0, n0, causal)};
    const auto run = [&] {
        data.layout.prepare(std::as_writable_bytes(std::span(data.workspace)));
        for (const KernelConfig& stage : stages)
            fmha::host_target::run_kernel(stage, data.args, {.threads = 2});
    };
    for (auto _ : state) {
        const auto share = fmha::bench::share_of_eigen(work, run);
        state.SetIterationTime(share.kernel_seconds);
        state.counters["GFLOP/s"] = work / share.kernel_seconds * 1e-9;
        state.counters["Eigen_GFLOP/s"] = fmha::bench::yardstick_flops / share.eigen_seconds * 1e-9;
        state.counters["share_of_Eigen"] = share.of_eigen;
    }
}

BENCHMARK_CAPTURE(backward, tile_128x128, std::int16_t{128}, std::int16_t{128}, false)
    ->UseManualTime()
    ->Iterations(1);
BENCHMARK_CAPTURE(backward, tile_64x128, std::int16_t{64}, std::int16_t{128}, false)
    ->UseManualTime()
    ->Iterations(1);
BENCHMARK_CAPTURE(backward, tile_16x128, std::int16_t{16}, std::int16_t{128}, false)
    ->UseManualTime()
    ->Iterations(1);

} // namespace

BENCHMARK_MAIN();
