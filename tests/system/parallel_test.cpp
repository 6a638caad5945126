#include "dispatcher/system/parallel.hpp"

#include <gmock/gmock.h>
#include <sched.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace fmha::system {
namespace {

TEST(OnThreads, EachNumberOnceOnAThreadOfItsOwn) {
    std::array<std::thread::id, 4> ids;
    on_threads(4, [&](int thread) { ids[static_cast<std::size_t>(thread)] = std::this_thread::get_id(); });
    EXPECT_EQ(ids[0], std::this_thread::get_id());
    EXPECT_EQ(std::set(ids.begin(), ids.end()).size(), ids.size());
    on_threads(0, [](int) { FAIL(); });
}

TEST(OnThreads, TheFirstExceptionIsThrownWhenAllHaveStopped) {
    std::atomic<int> stopped{0};
    const auto work = [&](int thread) {
        // The later thread is the earlier one to throw.
        if (thread == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
        ++stopped;
        if (thread > 0) throw std::runtime_error(std::to_string(thread));
    };
    EXPECT_THAT([&] { on_threads(3, work); }, testing::ThrowsMessage<std::runtime_error>("1"));
    EXPECT_EQ(stopped, 3);
}

TEST(ParallelFor, RunsEveryRoundOnceForEveryNumberOfThreads) {
    for (const int threads : {0, 1, 2, 7}) {
        std::vector<std::atomic<int>> runs(100);
        parallel_for(
            runs.size(), [&](std::size_t n) { ++runs[n]; }, threads);
        for (const auto& count : runs) EXPECT_EQ(count, 1) << threads;
    }
    parallel_for(0, [](int) { FAIL(); });
    parallel_for(-1, [](int) { FAIL(); });
}

TEST(ParallelFor, AnExceptionInAThreadReachesTheCallerAndEndsTheLoop) {
    for (const int threads : {1, 2, 4}) {
        std::atomic<int> rounds{0};
        const auto job = [&](int n) {
            ++rounds;
            if (n >= 10) throw std::runtime_error(std::to_string(n));
        };
        // The caller hears of the earliest round, also when another thread is faster.
        EXPECT_THAT([&] { parallel_for(100'000, job, threads); },
                    testing::ThrowsMessage<std::runtime_error>("10"));
        EXPECT_LT(rounds, 100'000);
    }
}

TEST(ParallelFor, SomethingThatIsNoExceptionReachesTheCallerToo) {
    EXPECT_THROW(parallel_for(
                     8, [](int) { throw 7; }, 4),
                 int);
}

TEST(ParallelWith, EveryThreadHasAJobOfItsOwn) {
    std::atomic<int> made{0};
    parallel_with(
        1000,
        [&](int) {
            ++made;
            return [owner = std::this_thread::get_id(), rounds = 0](int) mutable {
                EXPECT_EQ(owner, std::this_thread::get_id());
                ++rounds;
            };
        },
        3);
    EXPECT_EQ(made, 3);
}

TEST(ParallelWith, AJobThatCannotBeMadeIsThrown) {
    const auto main = std::this_thread::get_id();
    const auto make = [&](int) {
        if (std::this_thread::get_id() != main) throw std::bad_alloc();
        return [](int) {};
    };
    EXPECT_THROW(parallel_with(1000, make, 4), std::bad_alloc);
}

TEST(Threads, AreOfTheProcessorsThatAThreadMayUse) {
    const int before = hardware_threads();
    std::thread([] {
        cpu_set_t allowed;
        ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
        std::size_t first = 0;
        while (!CPU_ISSET(first, &allowed)) ++first;
        CPU_ZERO(&allowed);
        CPU_SET(first, &allowed);
        ASSERT_EQ(sched_setaffinity(0, sizeof allowed, &allowed), 0);
        EXPECT_EQ(hardware_threads(), 1);
        EXPECT_EQ(thread_count(0), 1);
    }).join();
    EXPECT_EQ(hardware_threads(), before);
}

TEST(Threads, ProcessesShareTheMachine) {
    EXPECT_EQ(thread_count(3), 3);
    EXPECT_EQ(thread_count(0), hardware_threads());
    EXPECT_EQ(threads_of_each(0), hardware_threads());
    EXPECT_EQ(threads_of_each(1), hardware_threads());
    EXPECT_EQ(threads_of_each(1'000'000), 1);
    for (int processes = 1; processes <= hardware_threads(); ++processes)
        EXPECT_LE(processes * threads_of_each(processes), hardware_threads());
}

} // namespace
} // namespace fmha::system
