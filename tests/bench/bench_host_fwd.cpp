// Forward attention on the host target against Eigen's float product, measured in the same process.
//
// Shape: batch 1, 8 heads, 2048 x 2048, hdim 128, fp16 in and out, 2 threads; work counted as 4·B·H·Sq·Sk·D.
#include "kernels/targets/host/host_target.hpp"
#include "tests/bench/eigen_yardstick.hpp"

#include <benchmark/benchmark.h>

#include <array>
#include <random>
#include <vector>

namespace {

using fmha::FwdArgs;
using fmha::KernelConfig;
using fmha::bench::median;
using fmha::bench::repetitions;
using fmha::bench::seconds_of;
using fmha::bench::share_of_eigen;
using fmha::bench::yardstick_flops;

constexpr std::int64_t heads = 8, seqlen = 2048, hdim = 128;

/// Tensors of the benchmark shape, [1, heads, seqlen, hdim], fp16 bit patterns of normal values.
struct Data {
    std::vector<std::uint16_t> q, k, v, o;
    FwdArgs args;

    explicit Data(bool causal) {
        std::mt19937 random(1);
        std::normal_distribution<float> normal;
        const auto fill = [&](std::vector<std::uint16_t>& to) {
            to.resize(static_cast<std::size_t>(heads * seqlen * hdim));
            for (auto& x : to) x = Eigen::half(normal(random)).x;
        };
        fill(q), fill(k), fill(v), fill(o);
        const auto view = [](std::vector<std::uint16_t>& data) {
            return fmha::TensorView{
                data.data(), fmha::ElementType::fp16, heads * seqlen * hdim, seqlen * hdim, hdim, 1};
        };
        args.shape.batch = 1;
        args.shape.nhead_q = args.shape.nhead_k = heads;
        args.shape.seqlen_q = args.shape.seqlen_k = seqlen;
        args.shape.hdim_q = args.shape.hdim_v = hdim;
        args.q = view(q), args.k = view(k), args.v = view(v), args.o = view(o);
        args.score.scale_s = 0.0883883476F;
        if (causal) args.mask = {fmha::MaskType::top_left, -1, 0, 0};
    }
    Data(const Data&) = delete;
    Data& operator=(const Data&) = delete;
    ~Data() = default;
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
