#include "dispatcher/system/parallel.hpp"

#include <sched.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace fmha::system {

int hardware_threads() {
    // std::thread::hardware_concurrency counts the machine's, also where taskset, Slurm or a container leave a process two of them.
    constexpr std::size_t most_sets = 64; // of 1,024 processors each
    for (std::size_t sets = 1; sets <= most_sets; sets *= 2) {
        std::vector<cpu_set_t> allowed(sets);
        const std::size_t bytes = sets * sizeof(cpu_set_t);
        if (sched_getaffinity(0, bytes, allowed.data()) == 0)
            return std::max(1, CPU_COUNT_S(bytes, allowed.data()));
    }
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

int thread_count(int requested) {
    return requested > 0 ? requested : hardware_threads();
}

int threads_of_each(int processes) {
    return std::max(1, hardware_threads() / std::max(1, processes));
}

void Failures::keep(std::int64_t number) {
    const std::scoped_lock lock(guard_);
    if (failure_ && number_ <= number) return;
    number_ = number;
    failure_ = std::current_exception();
}

void Failures::rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
}

void on_threads(int threads, const std::function<void(int)>& work) {
    Failures failures;
    const auto guarded = [&](int thread) {
        try {
            work(thread);
        } catch (...) {
            failures.keep(thread);
        }
    };
    {
        std::vector<std::jthread> others;
        others.reserve(static_cast<std::size_t>(std::max(0, threads - 1)));
        int thread = 1;
        try {
            for (; thread < threads; ++thread) others.emplace_back(guarded, thread);
        } catch (const std::exception&) {
            // No memory, or too many threads of this user: the rest is done below.
        }
        if (threads > 0) guarded(0);
        for (; thread < threads; ++thread) guarded(thread);
    }
    failures.rethrow();
}

} // namespace fmha::system
