#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace fmha::parity {

/// Calls `job(0) … job(count - 1)`, each once, on as many threads as the machine has cores. The first
/// exception is thrown again after every thread has stopped.
template <class Job>
void parallel_for(std::size_t count, const Job& job) {
    std::atomic<std::size_t> next{0};
    std::exception_ptr failure;
    std::mutex failure_mutex;
    const auto work = [&] {
        try {
            for (std::size_t i = next++; i < count; i = next++) job(i);
        } catch (...) {
            const std::lock_guard lock(failure_mutex);
            if (!failure) failure = std::current_exception();
            next = count;
        }
    };
    {
        const std::size_t threads =
            std::min<std::size_t>(count, std::max(1U, std::thread::hardware_concurrency()));
        std::vector<std::jthread> pool;
        for (std::size_t i = 1; i < threads; ++i) pool.emplace_back(work);
        work();
    }
    if (failure) std::rethrow_exception(failure);
}

} // namespace fmha::parity
