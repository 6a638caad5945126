#include "reference/threads.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace fmha::reference {

int thread_count(int requested) {
    return requested > 0 ? requested : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void run_tasks(std::int64_t tasks, int threads, const std::function<void(std::int64_t)>& task) {
    std::atomic<std::int64_t> next{0};
    std::exception_ptr failure;
    std::mutex failure_guard;
    const auto work = [&] {
        for (std::int64_t t = next++; t < tasks; t = next++) {
            try {
                task(t);
            } catch (...) {
                const std::scoped_lock lock(failure_guard);
                if (!failure) failure = std::current_exception();
                next = tasks;
            }
        }
    };
    {
        std::vector<std::jthread> helpers;
        const auto wanted = std::min<std::int64_t>(thread_count(threads), tasks);
        for (std::int64_t n = 1; n < wanted; ++n) helpers.emplace_back(work);
        work();
    }
    if (failure) std::rethrow_exception(failure);
}

} // namespace fmha::reference
