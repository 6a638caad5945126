#include "parity/process.hpp"

#include "dispatcher/types/error.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fmha::parity {
namespace {

/// A pipe whose ends close with the scope and are not inherited.
class Pipe {
  public:
    Pipe() {
        if (pipe2(ends_.data(), O_CLOEXEC) != 0) throw InputError("cannot create a pipe");
    }
    ~Pipe() {
        close_end(0);
        close_end(1);
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;
    Pipe(Pipe&&) = delete;
    Pipe& operator=(Pipe&&) = delete;
    int end(std::size_t i) const { return ends_[i]; }
    void close_end(std::size_t i) {
        if (ends_[i] >= 0) close(ends_[i]);
        ends_[i] = -1;
    }

  private:
    std::array<int, 2> ends_{-1, -1};
};

/// Reads what is there; false at the end of the stream.
bool read_some(int descriptor, std::string& into) {
    std::array<char, 16384> buffer{};
    const auto count = read(descriptor, buffer.data(), buffer.size());
    if (count < 0) return errno == EINTR || errno == EAGAIN;
    into.append(buffer.data(), static_cast<std::size_t>(count));
    return count > 0;
}

/// Collects both streams until they end or `deadline` passes; true when they ended.
bool collect(Pipe& out, Pipe& err, ProcessResult& result, std::chrono::steady_clock::time_point deadline) {
    std::array<pollfd, 2> polled{{{out.end(0), POLLIN, 0}, {err.end(0), POLLIN, 0}}};
    const std::array<std::string*, 2> texts{&result.out, &result.err};
    while (polled[0].fd >= 0 || polled[1].fd >= 0) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            deadline - std::chrono::steady_clock::now());
        if (left.count() <= 0) return false;
        if (poll(polled.data(), polled.size(), static_cast<int>(left.count())) < 0 && errno != EINTR)
            return false;
        for (std::size_t i = 0; i < polled.size(); ++i)
            if (polled[i].fd >= 0 && polled[i].revents != 0 && !read_some(polled[i].fd, *texts[i]))
                polled[i].fd = -1;
    }
    return true;
}

class SpawnActions {
  public:
    SpawnActions() { posix_spawn_file_actions_init(&actions_); }
    ~SpawnActions() { posix_spawn_file_actions_destroy(&actions_); }
    SpawnActions(const SpawnActions&) = delete;
    SpawnActions& operator=(const SpawnActions&) = delete;
    SpawnActions(SpawnActions&&) = delete;
    SpawnActions& operator=(SpawnActions&&) = delete;
    posix_spawn_file_actions_t* get() { return &actions_; }

  private:
    posix_spawn_file_actions_t actions_{};
};

} // namespace

ProcessResult run_process(const std::vector<std::string>& command, const std::filesystem::path& directory,
                          std::chrono::seconds time) {
    Pipe out;
    Pipe err;
    SpawnActions actions;
    posix_spawn_file_actions_addopen(actions.get(), STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(actions.get(), out.end(1), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(actions.get(), err.end(1), STDERR_FILENO);
    posix_spawn_file_actions_addchdir_np(actions.get(), directory.c_str());

    std::vector<std::string> words = command;
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_t child = 0;
    const int failed =
        posix_spawnp(&child, arguments.front(), actions.get(), nullptr, arguments.data(), environ);
    if (failed != 0)
        throw InputError(fmt::format("{}: cannot be started: {}", command.front(), std::strerror(failed)));
    out.close_end(1);
    err.close_end(1);

    ProcessResult result;
    if (!collect(out, err, result, std::chrono::steady_clock::now() + time)) {
        result.timed_out = true;
        kill(child, SIGKILL);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return result;
}

TemporaryDirectory::TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "fmha-parity-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr)
        throw InputError(fmt::format("{}: cannot be created: {}", pattern, std::strerror(errno)));
    path_ = pattern;
}

TemporaryDirectory::~TemporaryDirectory() {
    std::error_code ignored; // a left-over directory in the system's temporary folder does no harm
    std::filesystem::remove_all(path_, ignored);
}

} // namespace fmha::parity
