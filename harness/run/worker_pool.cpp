#include "harness/run/worker_pool.hpp"

#include "dispatcher/types/error.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <exception>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace fmha::harness {
namespace {

using Clock = std::chrono::steady_clock;

/// Writes or reads everything; false at the other side's end.
bool write_all(int fd, const void* data, std::size_t bytes) {
    const auto* at = static_cast<const char*>(data);
    while (bytes > 0) {
        const ssize_t n = write(fd, at, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        at += n;
        bytes -= static_cast<std::size_t>(n);
    }
    return true;
}

bool read_all(int fd, void* data, std::size_t bytes) {
    auto* at = static_cast<char*>(data);
    while (bytes > 0) {
        const ssize_t n = read(fd, at, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        at += n;
        bytes -= static_cast<std::size_t>(n);
    }
    return true;
}

/// What goes before an answer through the pipe.
struct AnswerHeader {
    std::uint64_t bytes = 0;
    std::uint64_t last = 0;  ///< 1: this process takes no further task
    std::uint64_t threw = 0; ///< 1: the answer says what the task threw
};

struct Answer {
    AnswerHeader header;
    std::string text;
};

/// What one task returned or threw. Nothing may be thrown further: unwinding the copy of the parent's stack would run its
/// destructors, which end other workers.
Answer answer_of(const std::function<std::string(std::size_t)>& task, std::size_t index) {
    Answer answer;
    try {
        answer.text = task(index);
    } catch (const std::exception& error) {
        answer = {{.last = 1, .threw = 1}, fmt::format("ended by an exception: {}", error.what())};
    } catch (...) {
        answer = {{.last = 1, .threw = 1}, "ended by an exception of an unknown type"};
    }
    answer.header.bytes = answer.text.size();
    return answer;
}

/// The child's side: takes indices until the pipe ends.
[[noreturn]] void serve(int from_parent, int to_parent, const std::function<std::string(std::size_t)>& task,
                        const std::function<bool()>& spent) {
    std::uint64_t index = 0;
    while (read_all(from_parent, &index, sizeof index)) {
        auto [header, answer] = answer_of(task, index);
        if (spent && spent()) header.last = 1;
        if (!write_all(to_parent, &header, sizeof header) ||
            !write_all(to_parent, answer.data(), answer.size()) || header.last != 0)
            break;
    }
    // Without the parent's destructors and buffers, which are not this process's to run.
    _exit(0);
}

/// One child process and the task that it is busy with.
class Worker {
  public:
    Worker(const std::function<std::string(std::size_t)>& task, const std::function<bool()>& spent) {
        int down[2] = {-1, -1}, up[2] = {-1, -1};
        if (pipe(down) != 0 || pipe(up) != 0)
            throw Error(fmt::format("a worker process needs pipes: {}", std::strerror(errno)));
        child_ = fork();
        if (child_ < 0)
            throw Error(fmt::format("a worker process cannot be started: {}", std::strerror(errno)));
        if (child_ == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            close(down[1]);
            close(up[0]);
            serve(down[0], up[1], task, spent);
        }
        close(down[0]);
        close(up[1]);
        to_child_ = down[1];
        from_child_ = up[0];
    }
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;
    ~Worker() {
        close(to_child_);
        close(from_child_);
        if (child_ > 0) {
            // Killed, not asked: a later sibling may hold a copy of its pipe, and it has nothing to save.
            kill(child_, SIGKILL);
            waitpid(child_, nullptr, 0);
        }
    }

    bool give(std::size_t task) {
        task_ = task;
        started_ = Clock::now();
        const std::uint64_t index = task;
        return write_all(to_child_, &index, sizeof index);
    }

    std::optional<std::size_t> task() const { return task_; }
    int descriptor() const { return from_child_; }
    Clock::duration busy() const { return Clock::now() - started_; }

    /// How the current task ended by itself; nullopt when the process is gone.
    std::optional<TaskEnd> take() {
        AnswerHeader header;
        TaskEnd end;
        if (!read_all(from_child_, &header, sizeof header)) return std::nullopt;
        end.answer.resize(header.bytes);
        if (!read_all(from_child_, end.answer.data(), end.answer.size())) return std::nullopt;
        if (header.threw != 0) end.kind = TaskEnd::Kind::crashed;
        task_.reset();
        last_ = header.last != 0;
        return end;
    }

    /// The last answer was the process's last.
    bool spent() const { return last_; }

    /// What ended a process that is gone.
    TaskEnd obituary() {
        int status = 0;
        waitpid(child_, &status, 0);
        child_ = 0;
        if (!WIFSIGNALED(status))
            return {TaskEnd::Kind::crashed, fmt::format("ended with exit status {}", WEXITSTATUS(status))};
        const int signal = WTERMSIG(status);
        return {TaskEnd::Kind::crashed, fmt::format("killed by signal {} ({})", signal, strsignal(signal)),
                signal == SIGKILL};
    }

  private:
    pid_t child_ = 0;
    int to_child_ = -1, from_child_ = -1;
    std::optional<std::size_t> task_;
    bool last_ = false;
    Clock::time_point started_;
};

/// A write to a worker that just died must be an error code, not the end of this process.
class IgnorePipeSignal {
  public:
    IgnorePipeSignal() : before_(std::signal(SIGPIPE, SIG_IGN)) {}
    IgnorePipeSignal(const IgnorePipeSignal&) = delete;
    IgnorePipeSignal& operator=(const IgnorePipeSignal&) = delete;
    ~IgnorePipeSignal() { std::signal(SIGPIPE, before_); }

  private:
    void (*before_)(int);
};

} // namespace

void run_isolated(std::size_t count, const PoolOptions& options,
                  const std::function<std::string(std::size_t)>& task,
                  const std::function<bool(std::size_t, const TaskEnd&)>& on_end) {
    const IgnorePipeSignal no_signal;
    const auto jobs = std::min<std::size_t>(count, static_cast<std::size_t>(std::max(1, options.jobs)));
    std::vector<std::unique_ptr<Worker>> workers(jobs);
    std::size_t next = 0, ended = 0;
    while (ended < count) {
        if (options.stop && options.stop()) return;
        for (auto& worker : workers) {
            if (next == count || (worker && worker->task())) continue;
            if (!worker) worker = std::make_unique<Worker>(task, options.spent);
            worker->give(next++);
        }
        std::vector<pollfd> waits;
        waits.reserve(workers.size());
        for (const auto& worker : workers)
            waits.push_back({worker && worker->task() ? worker->descriptor() : -1, POLLIN, 0});
        poll(waits.data(), waits.size(), options.task_timeout.count() > 0 || options.stop ? 100 : -1);
        for (std::size_t w = 0; w < workers.size(); ++w) {
            auto& worker = workers[w];
            if (!worker || !worker->task()) continue;
            const std::size_t index = *worker->task();
            TaskEnd end;
            if ((waits[w].revents & (POLLIN | POLLHUP)) != 0) {
                if (auto own = worker->take()) {
                    end = std::move(*own);
                    if (worker->spent()) worker.reset();
                } else {
                    end = worker->obituary();
                    worker.reset();
                }
            } else if (options.task_timeout.count() > 0 && worker->busy() > options.task_timeout) {
                end = {TaskEnd::Kind::timed_out,
                       fmt::format("still running after {} s",
                                   static_cast<double>(options.task_timeout.count()) / 1e3)};
                worker.reset();
            } else {
                continue;
            }
            ++ended;
            if (!on_end(index, end)) return;
        }
    }
}

} // namespace fmha::harness
