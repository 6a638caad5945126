#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>

/// Threads, and loops that share their rounds out to them. An exception in a thread never ends the process: it is thrown
/// again in the thread that asked, when all others have stopped.
namespace fmha::system {

/// Threads that this machine runs at a time for the calling thread, of the processors that it may use; at least 1.
int hardware_threads();

/// `requested`, or `hardware_threads()` when it is 0.
int thread_count(int requested);

/// Threads for each of `processes` processes that compute at the same time, so that together they have no more than
/// the machine runs; at least 1. 0 processes count as 1.
int threads_of_each(int processes);

/// Keeps one of the exceptions that several threads have: the one with the smallest number, so that it does not depend
/// on who was faster.
class Failures {
  public:
    /// Takes the exception that is being handled.
    void keep(std::int64_t number);
    void rethrow() const;

  private:
    std::mutex guard_;
    std::int64_t number_ = 0;
    std::exception_ptr failure_;
};

/// Calls work(0) … work(threads − 1), each once, on a thread of its own, work(0) on this one, and returns when all are
/// done. This thread does the work of threads that the system refuses to start. Throws the first of their errors.
void on_threads(int threads, const std::function<void(int)>& work);

/// Calls job(0) … job(count − 1), each once and begun in this order, on up to `threads` threads (0: as many as the
/// machine runs). Every thread has a job of its own, which make_job(thread) gives. After an exception no further round
/// begins, and the one of the earliest round is thrown.
template <std::integral Count, class MakeJob>
void parallel_with(Count count, const MakeJob& make_job, int threads = 0) {
    const auto rounds = static_cast<std::int64_t>(count);
    if (rounds <= 0) return;
    const std::int64_t wanted = thread_count(threads);
    std::atomic<std::int64_t> next{0};
    Failures failures;
    on_threads(static_cast<int>(wanted < rounds ? wanted : rounds), [&](int thread) {
        std::int64_t round = -1;
        try {
            auto job = make_job(thread);
            for (round = next++; round < rounds; round = next++) job(static_cast<Count>(round));
        } catch (...) {
            next = rounds;
            failures.keep(round);
        }
    });
    failures.rethrow();
}

/// The same with one job for all threads.
template <std::integral Count, class Job>
void parallel_for(Count count, const Job& job, int threads = 0) {
    parallel_with(
        count, [&](int) { return std::cref(job); }, threads);
}

} // namespace fmha::system
