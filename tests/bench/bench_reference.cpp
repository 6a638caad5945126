// Speed of the matrix oracle in units of Eigen's own double product, measured in the same run.
#include "reference/backward.hpp"
#include "reference/forward.hpp"
#include "tests/support/dense_problem.hpp"

#include <Eigen/Core>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <thread>
#include <vector>

namespace {

using fmha::ElementType;
using fmha::reference::ForwardOptions;
using fmha::test::DenseProblem;
using fmha::test::same_value;

constexpr std::int64_t heads = 8, length = 2048, hdim = 128;
constexpr int threads = 2, repetitions = 7;
constexpr double attention_flops = 4.0 * heads * length * length * hdim;
constexpr std::int64_t product_size = 1024;
constexpr double product_flops = 2.0 * threads * product_size * product_size * product_size;

/// The times of one run: on the wall clock, and of all processors together, which other load disturbs less.
struct Times {
    std::vector<double> wall, processor;

    void measure(const auto& work) {
        const auto start = std::chrono::steady_clock::now();
        const std::clock_t processor_start = std::clock();
        work();
        processor.push_back(static_cast<double>(std::clock() - processor_start) / CLOCKS_PER_SEC);
        wall.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
};

double median(std::vector<double> values) {
    std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
    return values[values.size() / 2];
}

/// Two products of 1024 x 1024 matrices at the same time, one a thread.
class ConcurrentProducts {
  public:
    void run() {
        std::vector<std::jthread> workers;
        for (Product& product : products_)
            workers.emplace_back([&product] { product.c.noalias() = product.a * product.b; });
    }

  private:
    struct Product {
        Eigen::MatrixXd a = Eigen::MatrixXd::Random(product_size, product_size);
        Eigen::MatrixXd b = Eigen::MatrixXd::Random(product_size, product_size);
        Eigen::MatrixXd c = Eigen::MatrixXd::Zero(product_size, product_size);
    };
    std::vector<Product> products_{threads};
};

/// Batch 1, 8 heads, 2048 x 2048, head dimension 128, fp32 inputs.
class Attention {
  public:
    void run(bool companions) const {
        ForwardOptions options;
        options.companions = companions;
        options.threads = threads;
        benchmark::DoNotOptimize(fmha::reference::forward(problem_.args, rows_, options).o.data());
    }

  private:
    DenseProblem<fmha::FwdArgs, float> problem_{
        {1, heads, heads, length, length, hdim, hdim}, ElementType::fp32, same_value};
    std::vector<fmha::reference::RowId> rows_ = fmha::reference::all_rows(problem_.args);
};

/// Interleaves the three so that other load on the machine meets all of them.
void matrix_oracle(benchmark::State& state) {
    ConcurrentProducts products;
    const Attention attention;
    Times product, plain, companions;
    for (auto _ : state) {
        for (int n = 0; n < repetitions; ++n) {
            product.measure([&] { products.run(); });
            plain.measure([&] { attention.run(false); });
            companions.measure([&] { attention.run(true); });
        }
    }
    const double product_rate = product_flops / median(product.wall);
    const double oracle_rate = attention_flops / median(plain.wall);
    state.counters["eigen_GFLOPs"] = product_rate * 1e-9;
    state.counters["oracle_GFLOPs"] = oracle_rate * 1e-9;
    state.counters["oracle_over_eigen"] = oracle_rate / product_rate;
    state.counters["companions_over_plain"] = median(companions.wall) / median(plain.wall);
    state.counters["oracle_over_eigen_cpu"] =
        attention_flops / median(plain.processor) / (product_flops / median(product.processor));
    state.counters["companions_over_plain_cpu"] = median(companions.processor) / median(plain.processor);
}
/// Batch 1, 4 heads, 1024 x 1024, head dimension 128, fp32 inputs; any LSE does for the time.
class Backward {
  public:
    static constexpr std::int64_t rows = 1024, of_heads = 4;
    static constexpr double flops = 10.0 * of_heads * rows * rows * hdim;

    Backward() : lse_(of_heads * rows, 8.0F) {
        args_.o = problem_.query_tensor(hdim);
        args_.d_o = problem_.query_tensor(hdim);
        args_.lse = {lse_.data(), ElementType::fp32, 0, rows, 1, 1};
        request_.rows = fmha::reference::all_rows(args_);
        request_.keys = fmha::reference::all_keys(args_);
    }

    void run(bool companions) const {
        fmha::reference::GradientOptions options;
        options.companions = companions;
        options.threads = threads;
        benchmark::DoNotOptimize(fmha::reference::backward(args_, request_, options).dq.value.data());
    }

  private:
    DenseProblem<fmha::BwdArgs, float> problem_{
        {1, of_heads, of_heads, rows, rows, hdim, hdim}, ElementType::fp32, same_value, 2};
    fmha::BwdArgs& args_ = problem_.args;
    std::vector<float> lse_;
    fmha::reference::GradientRequest request_;
};

/// Counts the five products, without the cost of the companions.
void matrix_gradients(benchmark::State& state) {
    ConcurrentProducts products;
    const Backward backward;
    Times product, plain, companions;
    for (auto _ : state) {
        for (int n = 0; n < repetitions; ++n) {
            product.measure([&] { products.run(); });
            plain.measure([&] { backward.run(false); });
            companions.measure([&] { backward.run(true); });
        }
    }
    const double product_rate = product_flops / median(product.wall);
    state.counters["eigen_GFLOPs"] = product_rate * 1e-9;
    state.counters["oracle_over_eigen"] = Backward::flops / median(plain.wall) / product_rate;
    state.counters["companions_over_plain"] = median(companions.wall) / median(plain.wall);
    state.counters["oracle_over_eigen_cpu"] =
        Backward::flops / median(plain.processor) / (product_flops / median(product.processor));
    state.counters["companions_over_plain_cpu"] = median(companions.processor) / median(plain.processor);
}
BENCHMARK(matrix_gradients)->Iterations(1)->UseRealTime()->Unit(benchmark::kMillisecond);

BENCHMARK(matrix_oracle)->Iterations(1)->UseRealTime()->Unit(benchmark::kMillisecond);

} // namespace

BENCHMARK_MAIN();
