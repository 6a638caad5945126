#pragma once

#include "harness/run/worker_pool.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <sys/types.h>

namespace fmha::harness {

/// The messages of a worker process since the last call.
struct WorkerNews {
    enum class Kind {
        nothing, ///< that is complete
        end,     ///< `end` is how its task ended
        gone,    ///< it has ended, or sent no message of a worker; `end` is why
        unable,  ///< it could not be made ready for tasks; the answer of `end` is why
    } kind = Kind::nothing;
    TaskEnd end{};
};

/// One child process that computes one task after another. This side of it, which believes nothing that the child says
/// without a limit: a kernel may have written over the child's memory.
class WorkerProcess {
  public:
    /// Forks. The child calls `prepare`, if there is one, when it is given its first task; then task(n) for every n that it is
    /// given, and `spent`, if there is one, after each. Throws Error when the system has no pipes or processes left.
    WorkerProcess(const std::function<std::string(std::size_t)>& task, const std::function<bool()>& spent,
                  const std::function<void()>& prepare = {});
    WorkerProcess(const WorkerProcess&) = delete;
    WorkerProcess& operator=(const WorkerProcess&) = delete;
    /// Kills the child.
    ~WorkerProcess();

    /// Only when it is not busy. False when the child does not take the task, because it is no more.
    bool give(std::size_t task);

    /// It was given a task of which it has not told the end.
    bool busy() const { return busy_; }
    /// It has told that it began the present task. A child that ends without having begun has not ended by that task.
    bool begun() const { return begun_; }
    /// Since the present task was given.
    std::chrono::steady_clock::duration busy_for() const;
    /// Becomes readable when there is news.
    int descriptor() const { return from_child_; }
    /// Never waits.
    WorkerNews news();
    /// It takes no further task.
    bool spent() const { return spent_; }

  private:
    WorkerNews next_message();
    TaskEnd obituary();

    pid_t child_ = 0;
    int to_child_ = -1, from_child_ = -1;
    std::string inbox_; ///< bytes that are not yet a whole message
    bool busy_ = false, begun_ = false, spent_ = false;
    std::chrono::steady_clock::time_point given_;
};

} // namespace fmha::harness
