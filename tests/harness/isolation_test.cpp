// The pool of worker processes: a task costs itself at most, and nothing that a child says is believed without a limit.

#include "dispatcher/system/process.hpp"
#include "harness/results/result_json.hpp"
#include "harness/run/worker_pool.hpp"
#include "harness/run/worker_process.hpp"
#include "tests/harness/gate_support.hpp"

#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <csignal>
#include <fcntl.h>
#include <map>
#include <new>
#include <set>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace fmha::harness::test {
namespace {

using testing::HasSubstr;

/// The result of `task` from a pool of two processes.
std::vector<TaskEnd> ends_of(std::size_t count, const std::function<std::string(std::size_t)>& task,
                             std::chrono::milliseconds timeout = std::chrono::milliseconds(0)) {
    std::vector<TaskEnd> ends(count);
    run_isolated(count, {2, timeout}, task, [&](std::size_t i, const TaskEnd& end) {
        ends[i] = end;
        return true;
    });
    return ends;
}

[[noreturn]] void hang_for_ever() {
    while (true) pause();
}

TEST(Isolation, ReturnsEveryAnswer) {
    const auto ends = ends_of(20, [](std::size_t i) { return std::string(i * 10'000, 'x'); });
    for (std::size_t i = 0; i < ends.size(); ++i) EXPECT_EQ(ends[i].answer.size(), i * 10'000);
}

/// The number of pipes that a program has open at its start.
std::string pipes_of_program() {
    return system::run_process({"sh", "-c", "ls -l /proc/self/fd | grep -c pipe:"}).out;
}

TEST(Isolation, ItsPipesAreNotThoseOfProgramsThatAreStarted) {
    const std::string without = pipes_of_program();
    const WorkerProcess worker([](std::size_t) { return std::string(); }, {});
    EXPECT_EQ(pipes_of_program(), without);
}

TEST(Isolation, ATaskThatCrashedIsNotTriedAgain) {
    // Memory that the processes of tasks share with this one.
    void* const shared =
        mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(shared, MAP_FAILED);
    auto* const begun = new (shared) std::atomic<int>(0);
    const auto ends = ends_of(1, [begun](std::size_t) -> std::string {
        ++*begun;
        std::raise(SIGKILL);
        return {};
    });
    EXPECT_EQ(ends[0].kind, TaskEnd::Kind::crashed);
    EXPECT_EQ(begun->load(), 1);
    munmap(shared, sizeof(int));
}

TEST(Isolation, ACrashCostsItself) {
    const auto ends = ends_of(6, [](std::size_t i) {
        if (i % 3 == 1) std::raise(SIGKILL);
        return std::to_string(i);
    });
    for (std::size_t i = 0; i < ends.size(); ++i) {
        EXPECT_EQ(ends[i].kind, i % 3 == 1 ? TaskEnd::Kind::crashed : TaskEnd::Kind::done);
        if (i % 3 != 1) {
            EXPECT_EQ(ends[i].answer, std::to_string(i));
        }
    }
    EXPECT_THAT(ends[1].answer, HasSubstr("signal 9"));
    const CaseResult result = lost_result(small_case(), {}, ends[1]);
    EXPECT_EQ(result.outcome, Outcome::crashed);
    EXPECT_EQ(result.name, "test/small@1");
}

TEST(Isolation, AnExceptionCostsItself) {
    // A worker that unwound its copy of this stack would end its sibling.
    const auto ends = ends_of(6, [&](std::size_t i) -> std::string {
        if (i % 3 == 1) throw std::runtime_error("no luck");
        if (i % 3 == 2) throw 7;
        // Is still at work when the sibling throws.
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        return std::to_string(i);
    });
    for (std::size_t i = 0; i < ends.size(); ++i) {
        EXPECT_EQ(ends[i].kind, i % 3 == 0 ? TaskEnd::Kind::done : TaskEnd::Kind::crashed);
        EXPECT_FALSE(ends[i].killed_from_outside);
    }
    EXPECT_EQ(ends[1].answer, "ended by an exception: no luck");
    EXPECT_EQ(ends[2].answer, "ended by an exception of an unknown type");
    EXPECT_EQ(ends[3].answer, "3");
}

TEST(Isolation, NoMemoryAndBadInputAreNoCrashes) {
    const auto ends = ends_of(3, [](std::size_t i) -> std::string {
        if (i == 0) throw std::bad_alloc();
        if (i == 1) throw InputError("the file says nothing");
        return "fine";
    });
    EXPECT_EQ(ends[0].kind, TaskEnd::Kind::no_memory);
    EXPECT_EQ(ends[1].kind, TaskEnd::Kind::bad_input);
    EXPECT_EQ(ends[1].answer, "the file says nothing");
    EXPECT_EQ(ends[2].answer, "fine");
    const CaseResult result = lost_result(small_case(), {}, ends[0]);
    EXPECT_EQ(result.outcome, Outcome::not_run);
    EXPECT_EQ(result.not_run_reason, NotRunReason::no_memory);
}

/// Two tasks on one process after another. A task says which process it ran in; `between` is called with the first one's
/// process when the first task has ended.
std::vector<TaskEnd> two_tasks(const std::function<void(pid_t)>& between) {
    std::vector<TaskEnd> ends(2);
    run_isolated(
        2, {.jobs = 1}, [](std::size_t) { return std::to_string(getpid()); },
        [&](std::size_t i, const TaskEnd& end) {
            ends[i] = end;
            if (i == 0) between(static_cast<pid_t>(std::stol(end.answer)));
            return true;
        });
    return ends;
}

TEST(Isolation, AProcessThatEndsBetweenTasksCostsNone) {
    const auto ends = two_tasks([](pid_t worker) {
        kill(worker, SIGKILL);
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    });
    EXPECT_EQ(ends[1].kind, TaskEnd::Kind::done) << ends[1].answer;
    EXPECT_NE(ends[1].answer, ends[0].answer);
}

TEST(Isolation, AProcessThatEndsBeforeItBeginsATaskDoesNotCostIt) {
    // Stopped, it still takes the task into its pipe; then it is killed without having looked.
    const auto ends = two_tasks([](pid_t worker) {
        kill(worker, SIGSTOP);
        if (fork() == 0) {
            std::this_thread::sleep_for(std::chrono::milliseconds(200));
            kill(worker, SIGKILL);
            _exit(0);
        }
    });
    EXPECT_EQ(ends[1].kind, TaskEnd::Kind::done) << ends[1].answer;
    EXPECT_NE(ends[1].answer, ends[0].answer);
}

/// Five tasks on three places, of which `prepare` lets some work. The answers are the places; closed places are left behind.
struct Places {
    std::vector<TaskEnd> ends = std::vector<TaskEnd>(5);
    std::map<std::size_t, std::string> closed;

    explicit Places(const std::function<void(std::size_t)>& prepare,
                    std::chrono::milliseconds timeout = std::chrono::minutes(1)) {
        PoolOptions options{.jobs = 3, .task_timeout = timeout};
        std::size_t mine = 99;
        options.prepare = [&](std::size_t place) {
            mine = place;
            prepare(place);
        };
        options.on_closed = [&](std::size_t place, const std::string& why) { closed[place] = why; };
        run_isolated(
            5, options, [&](std::size_t) { return std::to_string(mine); },
            [&](std::size_t i, const TaskEnd& end) {
                EXPECT_EQ(ends[i].answer, "") << "told twice";
                ends[i] = end;
                return true;
            });
    }
};

TEST(Isolation, EveryPlaceIsPreparedOnceAndNamed) {
    const Places places([](std::size_t) {});
    EXPECT_TRUE(places.closed.empty());
    std::set<std::size_t> seen;
    for (const TaskEnd& end : places.ends) {
        EXPECT_EQ(end.answer, std::to_string(end.place));
        seen.insert(end.place);
    }
    EXPECT_EQ(seen, (std::set<std::size_t>{0, 1, 2}));
}

TEST(Isolation, APlaceThatCannotBePreparedLeavesItsTasksToOthers) {
    const Places places([](std::size_t place) {
        if (place == 1) throw std::runtime_error("no light");
        if (place == 2) std::raise(SIGSEGV);
    });
    for (const TaskEnd& end : places.ends) EXPECT_EQ(end.answer, "0");
    ASSERT_EQ(places.closed.size(), 2U);
    EXPECT_EQ(places.closed.at(1), "3 attempts, the last one: no light");
    EXPECT_THAT(places.closed.at(2), HasSubstr("killed by signal 11"));
}

TEST(Isolation, APlaceThatHangsWhileItIsPreparedIsClosed) {
    const auto hang = [](std::size_t place) {
        if (place == 0) hang_for_ever();
    };
    const Places places(hang, std::chrono::seconds(3));
    for (const TaskEnd& end : places.ends) EXPECT_THAT(end.answer, testing::AnyOf("1", "2"));
    EXPECT_EQ(places.closed.at(0), "not ready after 3 s");
}

TEST(Isolation, WithoutAPlaceEveryTaskEndsWithoutAProcess) {
    const Places places([](std::size_t place) { throw std::runtime_error(std::to_string(place)); });
    EXPECT_EQ(places.closed.size(), 3U);
    for (const TaskEnd& end : places.ends) EXPECT_EQ(end.kind, TaskEnd::Kind::no_process);
    const CaseResult result = lost_result(small_case(), {}, places.ends[0]);
    EXPECT_EQ(result.outcome, Outcome::not_run);
    EXPECT_EQ(result.not_run_reason, NotRunReason::no_device);
}

/// Writes to every pipe that this process may write to, as a kernel that writes over the worker's memory could.
void write_to_pipes(const void* bytes, std::size_t count) {
    for (int fd = 3; fd < 64; ++fd) {
        struct stat status {};
        if (fstat(fd, &status) != 0 || !S_ISFIFO(status.st_mode)) continue;
        if ((fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY && write(fd, bytes, count) < 0) return;
    }
}

TEST(Isolation, ALengthThatAChildSaysIsNotBelieved) {
    std::vector<TaskEnd> ends(3);
    run_isolated(
        3, {.jobs = 1, .task_timeout = std::chrono::seconds(20)},
        [](std::size_t i) {
            std::array<unsigned char, 64> garbage{};
            garbage.fill(0xFF);
            if (i == 1) write_to_pipes(garbage.data(), garbage.size());
            return std::to_string(i);
        },
        [&](std::size_t i, const TaskEnd& end) {
            ends[i] = end;
            return true;
        });
    EXPECT_EQ(ends[0].answer, "0");
    EXPECT_EQ(ends[1].kind, TaskEnd::Kind::crashed);
    EXPECT_THAT(ends[1].answer, HasSubstr("cannot be read"));
    EXPECT_EQ(ends[2].answer, "2");
}

TEST(Isolation, AChildThatStopsInItsAnswerIsTimedOut) {
    // The beginning of a message, and never the rest of it.
    const auto ends = ends_of(
        2,
        [](std::size_t i) {
            const unsigned char beginning = 0x63;
            if (i == 0) write_to_pipes(&beginning, 1);
            if (i == 0) hang_for_ever();
            return std::string("done");
        },
        std::chrono::milliseconds(300));
    EXPECT_EQ(ends[0].kind, TaskEnd::Kind::timed_out);
    EXPECT_EQ(ends[1].answer, "done");
}

TEST(Isolation, ASpentProcessTakesNoOtherTask) {
    std::vector<std::string> answers(4);
    int tasks_here = 0; // of this process and, after the fork, of one worker
    run_isolated(
        4, {.jobs = 1, .spent = [&] { return tasks_here == 2; }},
        [&](std::size_t) { return std::to_string(++tasks_here); },
        [&](std::size_t i, const TaskEnd& end) {
            EXPECT_EQ(end.kind, TaskEnd::Kind::done);
            answers[i] = end.answer;
            return true;
        });
    EXPECT_THAT(answers, testing::ElementsAre("1", "2", "1", "2"));
}

TEST(Isolation, AHangCostsItself) {
    const auto ends = ends_of(
        3,
        [](std::size_t i) {
            if (i == 0) std::this_thread::sleep_for(std::chrono::hours(1));
            return std::string("done");
        },
        std::chrono::milliseconds(300));
    EXPECT_EQ(ends[0].kind, TaskEnd::Kind::timed_out);
    EXPECT_EQ(ends[1].answer, "done");
    EXPECT_EQ(ends[2].answer, "done");
    EXPECT_EQ(lost_result(small_case(), {}, ends[0]).outcome, Outcome::timed_out);
}

TEST(Isolation, AStrayAccessFarAwayCostsItself) {
    const auto ends = ends_of(2, [](std::size_t i) {
        const Case c = small_case();
        if (i == 1) return pack({run_right(c)});
        return pack({run_spoiled(
            c, [](const FwdArgs& a) { static_cast<volatile char*>(a.o.data)[std::int64_t{1} << 32U] = 1; })});
    });
    EXPECT_EQ(ends[0].kind, TaskEnd::Kind::crashed);
    ASSERT_EQ(ends[1].kind, TaskEnd::Kind::done);
    EXPECT_EQ(unpack(ends[1].answer).front().outcome, Outcome::passed);
}

} // namespace
} // namespace fmha::harness::test
