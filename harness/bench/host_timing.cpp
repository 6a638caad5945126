#include "harness/bench/timing.hpp"

#include "dispatcher/system/parallel.hpp"
#include "dispatcher/system/processor.hpp"
#include "harness/run/host_target.hpp"

#include <Eigen/Core>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>

namespace fmha::harness {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_of(const std::function<void()>& work) {
    const auto start = Clock::now();
    work();
    return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The fastest of a few runs: a ceiling is the machine's best, undisturbed by others.
double best_of(int runs, const std::function<void()>& work) {
    double best = seconds_of(work);
    for (int run = 1; run < runs; ++run) best = std::min(best, seconds_of(work));
    return best;
}

std::size_t hardware_threads() {
    return static_cast<std::size_t>(system::hardware_threads());
}

void on_every_thread(const std::function<void(std::size_t)>& work) {
    system::on_threads(system::hardware_threads(),
                       [&](int thread) { work(static_cast<std::size_t>(thread)); });
}

/// In one place: these kernels compute far longer than they load.
class HostTimed final : public TimedKernel {
  public:
    explicit HostTimed(const TimedCase& timed)
        : TimedKernel(timed), arguments_(timed.arguments), cleared_(timed.cleared) {}

    std::int64_t places() const override { return 1; }
    std::vector<double> time_parts(std::size_t first, std::size_t end, std::int64_t launches) override {
        std::vector<double> seconds;
        for (std::int64_t n = 0; n < launches; ++n)
            seconds.push_back(seconds_of([&] {
                for (std::size_t part = first; part < end; ++part)
                    if (const StageKernel* stage = stage_of(part))
                        stage->instance->launch(arguments_, {});
                    else
                        std::ranges::fill(cleared_, 0);
            }));
        return seconds;
    }
    void fetch() override {} // They are there.
    void restore() override {}

  private:
    Invocation arguments_;
    std::span<unsigned char> cleared_;
};

class HostTiming final : public TimingTarget {
  public:
    explicit HostTiming(const TargetOptions& options) : target_(make_host_target(options)) {}

    const std::shared_ptr<const Target>& target() const override { return target_; }
    std::string machine() const override { return system::processor_description(); }
    std::unique_ptr<TimedKernel> prepare(const TimedCase& timed) override {
        return std::make_unique<HostTimed>(timed);
    }

    /// Kernels of every type multiply in fp32 here.
    Ceiling matrix_ceiling(DataType) override {
        if (!matrix_.known()) {
            static constexpr Eigen::Index n = 768;
            const double seconds = best_of(3, [] {
                on_every_thread([](std::size_t) {
                    const Eigen::MatrixXf a = Eigen::MatrixXf::Constant(n, n, 0.5F);
                    Eigen::MatrixXf c(n, n);
                    for (int repeat = 0; repeat < 4; ++repeat) c.noalias() = a * a;
                });
            });
            matrix_ = {4.0 * 2.0 * static_cast<double>(n * n * n) * system::hardware_threads() / seconds,
                       fmt::format("fp32 products {0} x {0} x {0} on every thread", n)};
        }
        return matrix_;
    }

    Ceiling copy_ceiling() override {
        if (!copy_.known()) {
            const auto bytes =
                static_cast<std::size_t>(std::clamp<long>(4 * cache_bytes(), 64L << 20, 1L << 30));
            std::vector<std::vector<char>> from(hardware_threads()), to(hardware_threads());
            on_every_thread([&](std::size_t thread) {
                from[thread].assign(bytes / hardware_threads(), 'x');
                to[thread].assign(bytes / hardware_threads(), 'y');
            });
            const double seconds = best_of(5, [&] {
                on_every_thread([&](std::size_t thread) {
                    std::memcpy(to[thread].data(), from[thread].data(), to[thread].size());
                });
            });
            copy_ = {2.0 * static_cast<double>(bytes) / seconds,
                     fmt::format("memcpy of {} MiB on every thread together", bytes >> 20)};
        }
        return copy_;
    }

  private:
    static long cache_bytes() { return std::max(sysconf(_SC_LEVEL3_CACHE_SIZE), 0L); }

    std::shared_ptr<const Target> target_;
    Ceiling matrix_, copy_;
};

} // namespace

std::unique_ptr<TimingTarget> time_on_host(const TargetOptions& options) {
    return std::make_unique<HostTiming>(options);
}

} // namespace fmha::harness
