#include "harness/run/worker_process.hpp"

#include "dispatcher/types/error.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <optional>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

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

enum class MessageKind : std::uint32_t { begun, ended, unable };

/// The header of every message of a child.
struct MessageHeader {
    static constexpr std::uint64_t signature = 0x666D68612D777263;
    /// Results of a case with every kernel of a catalogue are some 10 MB.
    static constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30;

    std::uint64_t mark = signature;
    MessageKind kind = MessageKind::begun;
    TaskEnd::Kind end = TaskEnd::Kind::done; ///< of an ended task
    std::uint64_t last = 0;                  ///< 1: this process takes no further task
    std::uint64_t bytes = 0;                 ///< of the answer that follows

    bool believable() const {
        return mark == signature && kind <= MessageKind::unable && end <= TaskEnd::Kind::timed_out &&
               last <= 1 && bytes <= most_bytes;
    }
};

/// The result or the exception of one task. Nothing may be thrown further: unwinding the copy of the parent's stack would run its
/// destructors, which end other workers.
TaskEnd end_of(const std::function<std::string(std::size_t)>& task, std::size_t index) {
    try {
        return {TaskEnd::Kind::done, task(index)};
    } catch (...) {
        return end_of_exception();
    }
}

/// Makes this process ready for tasks. False when it cannot be; the parent is told why.
bool prepared(int to_parent, const std::function<void()>& prepare) {
    std::string why;
    try {
        if (prepare) prepare();
        return true;
    } catch (const std::exception& error) {
        why = error.what();
    } catch (...) {
        why = end_of_exception().answer;
    }
    const MessageHeader header{.kind = MessageKind::unable, .last = 1, .bytes = why.size()};
    if (write_all(to_parent, &header, sizeof header)) write_all(to_parent, why.data(), why.size());
    return false;
}

/// The child's side: takes indices until the pipe ends.
[[noreturn]] void serve(int from_parent, int to_parent, const std::function<std::string(std::size_t)>& task,
                        const std::function<bool()>& spent, const std::function<void()>& prepare) {
    const MessageHeader begun;
    std::uint64_t index = 0;
    bool ready = false;
    while (read_all(from_parent, &index, sizeof index)) {
        // Only now, because the parent gives the task to a process that still listens.
        ready = ready || prepared(to_parent, prepare);
        if (!ready || !write_all(to_parent, &begun, sizeof begun)) break;
        const TaskEnd end = end_of(task, index);
        MessageHeader header{.kind = MessageKind::ended, .end = end.kind, .bytes = end.answer.size()};
        // An exception of an unknown kind may have left anything behind.
        if (end.kind == TaskEnd::Kind::crashed || (spent && spent())) header.last = 1;
        if (!write_all(to_parent, &header, sizeof header) ||
            !write_all(to_parent, end.answer.data(), end.answer.size()) || header.last != 0)
            break;
    }
    // Without the parent's destructors and buffers, which are not this process's to run.
    _exit(0);
}

/// The status of a child that ends or has just been killed. nullopt when it stays: the system cannot end a process that
/// is inside a driver that hangs, and nobody may wait for that.
std::optional<int> status_of(pid_t child) {
    constexpr auto patience = std::chrono::seconds(5);
    const auto deadline = Clock::now() + patience;
    for (int status = 0; Clock::now() < deadline; std::this_thread::sleep_for(std::chrono::milliseconds(1)))
        if (waitpid(child, &status, WNOHANG) != 0) return status;
    return std::nullopt;
}

} // namespace

WorkerProcess::WorkerProcess(const std::function<std::string(std::size_t)>& task,
                             const std::function<bool()>& spent, const std::function<void()>& prepare) {
    std::array<int, 2> down{-1, -1}, up{-1, -1};
    const auto fail = [&](const char* need) {
        const int reason = errno;
        for (const int end : {down[0], down[1], up[0], up[1]})
            if (end >= 0) close(end);
        throw Error(fmt::format("a worker process {}: {}", need, std::strerror(reason)));
    };
    // Programs that a case starts, such as compilers, would keep a copy.
    if (pipe2(down.data(), O_CLOEXEC) != 0 || pipe2(up.data(), O_CLOEXEC) != 0) fail("needs pipes");
    child_ = fork();
    if (child_ < 0) fail("cannot be started");
    if (child_ == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(down[1]);
        close(up[0]);
        serve(down[0], up[1], task, spent, prepare);
    }
    close(down[0]);
    close(up[1]);
    to_child_ = down[1];
    from_child_ = up[0];
    fcntl(from_child_, F_SETFL, O_NONBLOCK);
}

WorkerProcess::~WorkerProcess() {
    close(to_child_);
    close(from_child_);
    if (child_ > 0) {
        // Killed, not asked: a later sibling may hold a copy of its pipe, and it has nothing to save.
        kill(child_, SIGKILL);
        status_of(child_);
    }
}

bool WorkerProcess::give(std::size_t task) {
    given_ = Clock::now();
    busy_ = true;
    begun_ = false;
    const std::uint64_t index = task;
    return write_all(to_child_, &index, sizeof index);
}

Clock::duration WorkerProcess::busy_for() const {
    return Clock::now() - given_;
}

WorkerNews WorkerProcess::news() {
    std::array<char, 1 << 16> block{};
    const ssize_t n = read(from_child_, block.data(), block.size());
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return {};
    if (n <= 0) return {WorkerNews::Kind::gone, obituary()};
    inbox_.append(block.data(), static_cast<std::size_t>(n));
    return next_message();
}

WorkerNews WorkerProcess::next_message() {
    MessageHeader header;
    while (inbox_.size() >= sizeof header) {
        std::memcpy(&header, inbox_.data(), sizeof header);
        if (!header.believable() || !busy_)
            return {
                WorkerNews::Kind::gone,
                {TaskEnd::Kind::crashed, "sent an answer that cannot be read: its memory was overwritten"}};
        if (inbox_.size() - sizeof header < header.bytes) return {};
        const std::string answer = inbox_.substr(sizeof header, header.bytes);
        inbox_.erase(0, sizeof header + header.bytes);
        if (header.kind == MessageKind::unable)
            return {WorkerNews::Kind::unable, {TaskEnd::Kind::crashed, answer}};
        begun_ = true;
        if (header.kind == MessageKind::begun) continue;
        busy_ = false;
        spent_ = header.last != 0;
        return {WorkerNews::Kind::end, {header.end, answer}};
    }
    return {};
}

/// The end of a process whose pipe has ended, in words.
TaskEnd WorkerProcess::obituary() {
    const auto status = status_of(child_);
    if (!status) return {TaskEnd::Kind::crashed, "closed its pipe and went on"};
    child_ = 0;
    if (!WIFSIGNALED(*status))
        return {TaskEnd::Kind::crashed, fmt::format("ended with exit status {}", WEXITSTATUS(*status))};
    const int signal = WTERMSIG(*status);
    return {TaskEnd::Kind::crashed, fmt::format("killed by signal {} ({})", signal, strsignal(signal)),
            signal == SIGKILL};
}

} // namespace fmha::harness
