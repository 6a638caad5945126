#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace fmha::harness {

/// How one task of a pool ended.
struct TaskEnd {
    enum class Kind : std::uint32_t {
        done,
        no_memory, ///< it threw std::bad_alloc
        bad_input, ///< it threw InputError
        crashed,   ///< it threw something else, or its process ended
        timed_out,
        no_process, ///< no place was left whose process could begin it
    } kind = Kind::done;
    std::string answer{}; ///< the task's result, when done; otherwise a sentence
    /// Crashed by SIGKILL, which no program brings on itself by a mistake: the system had no memory left, or somebody
    /// ended the process.
    bool killed_from_outside = false;
    std::size_t place = 0; ///< number of the process at a time that had it, 0 … jobs − 1
};

/// The end of a task that threw the exception that is being handled.
TaskEnd end_of_exception();

struct PoolOptions {
    int jobs = 1;                              ///< processes at a time
    std::chrono::milliseconds task_timeout{0}; ///< of one task; 0 = none
    std::function<bool()> stop{};              ///< asked several times a second; true ends the run early
    std::function<bool()> spent{}; ///< asked in the worker after each task; true: it takes no other
    /// Called in each process of a place before its first task. A place whose processes throw, die or hang in it is closed:
    /// it takes no more tasks, and its task goes to another one.
    std::function<void(std::size_t place)> prepare{};
    /// Told, in the caller's process, which place was closed, and why in a clause.
    std::function<void(std::size_t place, const std::string& why)> on_closed{};
};

/// Runs task(0) … task(count − 1) in child processes, each with the caller's memory as it is now, and hands
/// every end to `on_end` in this process, in the order in which tasks finish. A task that throws, kills its process
/// or runs too long costs itself only: the process is replaced and the others go on. A process that ends between two
/// tasks costs none: the next one gets another process. Call it before this process starts threads. Returns early when
/// `on_end` returns false or `stop` returns true; tasks that have not finished then are killed and have no end.
void run_isolated(std::size_t count, const PoolOptions& options,
                  const std::function<std::string(std::size_t)>& task,
                  const std::function<bool(std::size_t, const TaskEnd&)>& on_end);

} // namespace fmha::harness
