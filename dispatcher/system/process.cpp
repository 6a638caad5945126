#include "dispatcher/system/process.hpp"

#include "dispatcher/types/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fmha::system {
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

/// Hands on the complete lines of a text that grows.
class Lines {
  public:
    explicit Lines(const std::function<void(std::string_view)>& take) : take_(take) {}
    void look(const std::string& text) {
        if (!take_) return;
        for (auto end = text.find('\n', begin_); end != std::string::npos; end = text.find('\n', begin_)) {
            take_(std::string_view(text).substr(begin_, end - begin_));
            begin_ = end + 1;
        }
    }

  private:
    const std::function<void(std::string_view)>& take_;
    std::size_t begin_ = 0;
};

/// Collects both streams of `child` until they end, or kills it at the end of its time.
void collect(Pipe& out, Pipe& err, pid_t child, const ProcessOptions& options, ProcessResult& result) {
    constexpr std::int64_t tick = 100;
    const auto deadline = std::chrono::steady_clock::now() + options.time;
    std::array<pollfd, 2> polled{{{out.end(0), POLLIN, 0}, {err.end(0), POLLIN, 0}}};
    const std::array<std::string*, 2> texts{&result.out, &result.err};
    Lines lines(options.on_line);
    while (polled[0].fd >= 0 || polled[1].fd >= 0) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            deadline - std::chrono::steady_clock::now());
        if (left.count() <= 0) {
            result.timed_out = true;
            kill(child, SIGKILL);
            return;
        }
        if (!result.stopped && options.stop && options.stop()) {
            result.stopped = true;
            kill(child, SIGINT);
        }
        const auto patience = options.stop ? std::min<std::int64_t>(left.count(), tick) : left.count();
        if (poll(polled.data(), polled.size(), static_cast<int>(patience)) < 0) {
            if (errno == EINTR) continue;
            kill(child, SIGKILL);
            return;
        }
        for (std::size_t i = 0; i < polled.size(); ++i)
            if (polled[i].fd >= 0 && polled[i].revents != 0 && !read_some(polled[i].fd, *texts[i]))
                polled[i].fd = -1;
        lines.look(result.out);
    }
}

/// The environment of this process with additions in front, so that they win.
class Environment {
  public:
    explicit Environment(std::vector<std::string> additions) : additions_(std::move(additions)) {
        for (std::string& addition : additions_) entries_.push_back(addition.data());
        for (char** entry = environ; *entry != nullptr; ++entry)
            if (!replaced(*entry)) entries_.push_back(*entry);
        entries_.push_back(nullptr);
    }
    char** data() { return entries_.data(); }

  private:
    bool replaced(std::string_view entry) const {
        const auto name = entry.substr(0, entry.find('=') + 1);
        return std::any_of(additions_.begin(), additions_.end(),
                           [&](const std::string& addition) { return addition.starts_with(name); });
    }
    std::vector<std::string> additions_;
    std::vector<char*> entries_;
};

class SpawnActions {
  public:
    SpawnActions() {
        posix_spawn_file_actions_init(&actions_);
        posix_spawnattr_init(&attributes_);
        sigset_t none{};
        sigemptyset(&none);
        posix_spawnattr_setsigmask(&attributes_, &none);
        posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK);
    }
    ~SpawnActions() {
        posix_spawnattr_destroy(&attributes_);
        posix_spawn_file_actions_destroy(&actions_);
    }
    SpawnActions(const SpawnActions&) = delete;
    SpawnActions& operator=(const SpawnActions&) = delete;
    SpawnActions(SpawnActions&&) = delete;
    SpawnActions& operator=(SpawnActions&&) = delete;
    posix_spawn_file_actions_t* get() { return &actions_; }
    const posix_spawnattr_t* attributes() const { return &attributes_; }

  private:
    posix_spawn_file_actions_t actions_{};
    posix_spawnattr_t attributes_{};
};

} // namespace

ProcessResult run_process(const std::vector<std::string>& command, const ProcessOptions& options) {
    Pipe out;
    Pipe err;
    SpawnActions actions;
    posix_spawn_file_actions_addopen(actions.get(), STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(actions.get(), out.end(1), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(actions.get(), err.end(1), STDERR_FILENO);
    posix_spawn_file_actions_addchdir_np(actions.get(), options.directory.c_str());

    std::vector<std::string> words = command;
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_t child = 0;
    Environment environment(options.environment);
    const int failed = posix_spawnp(&child, arguments.front(), actions.get(), actions.attributes(),
                                    arguments.data(), environment.data());
    if (failed != 0)
        throw InputError(fmt::format("{}: cannot be started: {}", command.front(), std::strerror(failed)));
    out.close_end(1);
    err.close_end(1);

    ProcessResult result;
    collect(out, err, child, options, result);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return result;
}

TemporaryDirectory::TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "fmha-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr)
        throw InputError(fmt::format("{}: cannot be created: {}", pattern, std::strerror(errno)));
    path_ = pattern;
}

TemporaryDirectory::~TemporaryDirectory() {
    std::error_code ignored; // a left-over directory in the system's temporary folder does no harm
    std::filesystem::remove_all(path_, ignored);
}

} // namespace fmha::system
