#pragma once

#include <Eigen/Dense>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>

/// The yardstick of kernels of the host: Eigen's own float product, two of 1024³ at the same time, one a thread.
namespace fmha::bench {

inline constexpr int repetitions = 7;
inline constexpr double yardstick_flops = 4.0 * 1024 * 1024 * 1024;

/// The bits of a number in fp16.
inline std::uint16_t half_code(float value) {
    return Eigen::half(value).x;
}

double seconds_of(auto&& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline double median(std::array<double, repetitions> values) {
    std::nth_element(values.begin(), values.begin() + repetitions / 2, values.end());
    return values[repetitions / 2];
}

/// Seconds of the two products.
inline double eigen_pair_seconds() {
    using Matrix = Eigen::MatrixXf;
    struct Product {
        Matrix a = Matrix::Random(1024, 1024), b = Matrix::Random(1024, 1024), c = Matrix::Zero(1024, 1024);
        void run() { c.noalias() = a * b; }
    };
    static std::array<Product, 2> products;
    return seconds_of([&] {
        std::jthread other([&] { products[1].run(); });
        products[0].run();
    });
}

/// What a kernel's time is compared with. The ratio is taken per repetition, kernel and yardstick back to back, so that a change of the
/// machine's speed meets both; the median of the ratios is what the kernel is judged by.
struct Share {
    double kernel_seconds, eigen_seconds, of_eigen;
};
Share share_of_eigen(double flops, auto&& kernel) {
    std::array<double, repetitions> seconds{}, eigen{}, ratio{};
    for (std::size_t i = 0; i < repetitions; ++i) {
        eigen[i] = eigen_pair_seconds();
        seconds[i] = seconds_of(kernel);
        eigen[i] = (eigen[i] + eigen_pair_seconds()) / 2;
        ratio[i] = (flops / seconds[i]) / (yardstick_flops / eigen[i]);
    }
    return {median(seconds), median(eigen), median(ratio)};
}

} // namespace fmha::bench
