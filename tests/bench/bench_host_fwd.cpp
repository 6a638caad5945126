// Forward attention on the host target against Eigen's float product, measured in the same process.
//
// Shape: batch 1, 8 heads, 2048 x 2048, hdim 128, fp16 in and out, 2 threads; work counted as 4·B·H·Sq·Sk·D.
#include "kernels/targets/host/host_target.hpp"
#include "tests/bench/eigen_yardstick.hpp"
#include "tests/support/dense_problem.hpp"

#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>

namespace {

using fmha::FwdArgs;
using fmha::KernelConfig;
using fmha::bench::median;
using fmha::bench::repetitions;
using fmha::bench::seconds_of;
using fmha::bench::share_of_eigen;
using fmha::bench::yardstick_flops;

constexpr std::int64_t heads = 8, seqlen = 2048, hdim = 128;

/// The benchmark shape in fp16.
struct Data : fmha::test::DenseProblem<FwdArgs, std::uint16_t> {
    explicit Data(bool causal)
        : DenseProblem({1, heads, heads, seqlen, seqlen, hdim, hdim}, fmha::ElementType::fp16,
                       fmha::bench::half_code) {
        args.o = query_tensor(hdim);
        if (causal) args.mask = {fmha::MaskType::top_left, -1, 0, 0};
    }
};

KernelConfig config_of(std::int16_t m0, std::int16_t n0, bool causal) {
    KernelConfig config;
    config.arch = "gfx950";
    config.signature.data_type = fmha::DataType::fp16;
    config.signature.mask = causal ? fmha::MaskClass::causal : fmha::MaskClass::none;
    config.signature.hdim_q = config.signature.hdim_v = hdim;
    config.algorithm.tile = {.m0 = m0, .n0 = n0, .k0 = 32, .n1 = 128, .k1 = 32, .k0max = 128};
    config.algorithm.pad = {true, true, 8, 8};
    return config;
}

constexpr double work = 4.0 * heads * seqlen * seqlen * hdim;

void forward(benchmark::State& state, std::int16_t m0, std::int16_t n0, bool causal) {
    Data data(causal);
    const KernelConfig config = config_of(m0, n0, causal);
    for (auto _ : state) {
        const auto share =
            share_of_eigen(work, [&] { fmha::host_target::run_kernel(config, data.args, {.threads = 2}); });
        state.SetIterationTime(share.kernel_seconds);
        state.counters["GFLOP/s"] = work / share.kernel_seconds * 1e-9;
        state.counters["Eigen_GFLOP/s"] = yardstick_flops / share.eigen_seconds * 1e-9;
        state.counters["share_of_Eigen"] = share.of_eigen;
    }
}

/// Causal time over non-causal time of the same tile.
void causal_cost(benchmark::State& state, std::int16_t m0, std::int16_t n0) {
    Data whole(false), half(true);
    for (auto _ : state) {
        std::array<double, repetitions> ratio{};
        for (double& r : ratio) {
            const double full = seconds_of(
                [&] { fmha::host_target::run_kernel(config_of(m0, n0, false), whole.args, {.threads = 2}); });
            const double causal = seconds_of(
                [&] { fmha::host_target::run_kernel(config_of(m0, n0, true), half.args, {.threads = 2}); });
            r = causal / full;
        }
        state.SetIterationTime(median(ratio));
        state.counters["causal_over_full"] = median(ratio);
    }
}

BENCHMARK_CAPTURE(forward, tile_128x128, std::int16_t{128}, std::int16_t{128}, false)
    ->UseManualTime()
    ->Iterations(1);
BENCHMARK_CAPTURE(forward, tile_64x64, std::int16_t{64}, std::int16_t{64}, false)
    ->UseManualTime()
    ->Iterations(1);
BENCHMARK_CAPTURE(forward, tile_128x32, std::int16_t{128}, std::int16_t{32}, false)
    ->UseManualTime()
    ->Iterations(1);
BENCHMARK_CAPTURE(causal_cost, tile_128x128, std::int16_t{128}, std::int16_t{128})
    ->UseManualTime()
    ->Iterations(1);
BENCHMARK_CAPTURE(causal_cost, tile_64x64, std::int16_t{64}, std::int16_t{64})
    ->UseManualTime()
    ->Iterations(1);

} // namespace

BENCHMARK_MAIN();
