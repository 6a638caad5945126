#include "dispatcher/system/process.hpp"

#include "dispatcher/types/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fmha::system {
namespace {

constexpr std::array ending_signals{SIGINT, SIGTERM, SIGHUP};

/// A pipe whose ends close with the scope and are not inherited.
class Pipe {
  public:
    Pipe() {
        if (pipe2(ends_.data(), O_CLOEXEC) != 0)
            throw InputError(fmt::format("a pipe cannot be created: {}", std::strerror(errno)));
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

/// Reads the bytes that are there; false at the end of the stream.
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

/// Holds back the signals that end programs while a program runs in a group of its own, where no terminal's Ctrl-C reaches
/// it. They are this process's again at the end of the scope.
class HeldSignals {
  public:
    HeldSignals() {
        sigemptyset(&held_);
        for (const int signal : ending_signals) {
            struct sigaction action {};
            // Held back, a signal that this process ignores would become pending all the same.
            if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_IGN)
                sigaddset(&held_, signal);
        }
        pthread_sigmask(SIG_BLOCK, &held_, &before_);
    }
    ~HeldSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    HeldSignals(const HeldSignals&) = delete;
    HeldSignals& operator=(const HeldSignals&) = delete;
    HeldSignals(HeldSignals&&) = delete;
    HeldSignals& operator=(HeldSignals&&) = delete;

    /// A signal that came and that the caller does not hold back itself; 0 without one.
    int pending() const {
        sigset_t came{};
        sigpending(&came);
        for (const int signal : ending_signals)
            if (sigismember(&came, signal) == 1 && sigismember(&held_, signal) == 1 &&
                sigismember(&before_, signal) == 0)
                return signal;
        return 0;
    }

  private:
    sigset_t held_{}, before_{};
};

/// A program that runs, the leader of its process group. One that nobody waited for is killed, with its group, at the end of the
/// scope.
class Child {
  public:
    explicit Child(pid_t id) : id_(id) {}
    ~Child() {
        if (id_ == 0) return;
        kill_group(SIGKILL);
        wait();
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    Child(Child&&) = delete;
    Child& operator=(Child&&) = delete;

    void kill_group(int signal) const { kill(-id_, signal); }
    /// Whether `wait` returns at once. Its number stays its own until then.
    bool ended() const {
        siginfo_t info{};
        const auto id = static_cast<id_t>(id_);
        return waitid(P_PID, id, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0;
    }
    /// Its status, when it has ended.
    int wait() {
        int status = 0;
        while (waitpid(id_, &status, 0) < 0 && errno == EINTR) {
        }
        id_ = 0;
        return status;
    }

  private:
    pid_t id_;
};

/// Collects both streams of a program until they and it end, and ends its group when that takes too long or somebody wants it.
class Collector {
  public:
    Collector(Pipe& out, Pipe& err, const Child& child, const ProcessOptions& options,
              const HeldSignals& signals, ProcessResult& result)
        : child_(child), options_(options), signals_(signals),
          result_(result), polled_{{{out.end(0), POLLIN, 0}, {err.end(0), POLLIN, 0}}},
          lines_(options.on_line) {}

    void run() {
        while (reads() || !child_.ended()) {
            if (Clock::now() >= deadline_ && !ask_again()) break;
            if (too_much()) break;
            pass_on_wishes();
            // A program ends a moment after its streams.
            if (!reads()) pause_ = std::min(2 * pause_, tick);
            const auto pause = reads() ? tick : pause_;
            if (!read_for(std::min<Clock::duration>(pause, deadline_ - Clock::now()))) break;
        }
        if (too_much() || asked_ == Asked::to_terminate) child_.kill_group(SIGKILL);
    }

  private:
    using Clock = std::chrono::steady_clock;
    static constexpr auto tick = std::chrono::milliseconds(100);
    static constexpr auto grace = std::chrono::seconds(2);

    /// What the group was told so far.
    enum class Asked : std::uint8_t { nothing, to_end, to_terminate };

    void ask(Asked how, int signal) {
        asked_ = std::max(asked_, how);
        child_.kill_group(signal);
        deadline_ = std::min(deadline_, Clock::now() + grace);
    }

    /// Terminates the group whose time is over; false when it did not listen to that.
    bool ask_again() {
        if (asked_ == Asked::to_terminate) return false;
        result_.timed_out = asked_ == Asked::nothing;
        deadline_ = Clock::time_point::max();
        // Ninja gives its compilers groups of their own and ends them when it is asked to, not when it is killed.
        ask(Asked::to_terminate, SIGTERM);
        return true;
    }

    bool reads() const { return polled_[0].fd >= 0 || polled_[1].fd >= 0; }

    bool too_much() {
        const std::size_t written = result_.out.size() + result_.err.size();
        result_.wrote_too_much = options_.most_output > 0 && written > options_.most_output;
        return result_.wrote_too_much;
    }

    void pass_on_wishes() {
        if (!result_.stopped && options_.stop && options_.stop()) {
            result_.stopped = true;
            ask(Asked::to_end, SIGINT);
        }
        const int signal = signals_.pending();
        if (signal == 0 || passed_on_) return;
        passed_on_ = true;
        ask(Asked::to_end, signal);
    }

    /// False when nothing can be read any more.
    bool read_for(Clock::duration patience) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(patience).count();
        if (poll(polled_.data(), polled_.size(), static_cast<int>(std::max<std::int64_t>(left, 0))) < 0)
            return errno == EINTR;
        const std::array<std::string*, 2> texts{&result_.out, &result_.err};
        for (std::size_t i = 0; i < polled_.size(); ++i)
            if (polled_[i].fd >= 0 && polled_[i].revents != 0 && !read_some(polled_[i].fd, *texts[i]))
                polled_[i].fd = -1;
        lines_.look(result_.out);
        return true;
    }

    const Child& child_;
    const ProcessOptions& options_;
    const HeldSignals& signals_;
    ProcessResult& result_;
    std::array<pollfd, 2> polled_;
    Lines lines_;
    bool passed_on_ = false;
    Asked asked_ = Asked::nothing;
    Clock::time_point deadline_ = Clock::now() + options_.time;
    std::chrono::milliseconds pause_{1};
};

/// The environment of this process, or those variables of it that are inherited, with additions in front, so that they win.
class Environment {
  public:
    explicit Environment(const ProcessOptions& options) : additions_(options.environment) {
        for (std::string& addition : additions_) entries_.push_back(addition.data());
        for (char** entry = environ; *entry != nullptr; ++entry)
            if (!replaced(*entry) && (!options.inherited || is_named(*options.inherited, *entry)))
                entries_.push_back(*entry);
        entries_.push_back(nullptr);
    }
    char** data() { return entries_.data(); }

  private:
    bool replaced(std::string_view entry) const {
        const auto name = entry.substr(0, entry.find('=') + 1);
        return std::any_of(additions_.begin(), additions_.end(),
                           [&](const std::string& addition) { return addition.starts_with(name); });
    }
    static bool is_named(const std::vector<std::string>& names, std::string_view entry) {
        return std::ranges::find(names, entry.substr(0, entry.find('='))) != names.end();
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
        // A group of its own gets no signal of a terminal, so those that come are meant for it, also below a process that ignores them.
        sigset_t endings{};
        sigemptyset(&endings);
        for (const int signal : ending_signals) sigaddset(&endings, signal);
        posix_spawnattr_setsigdefault(&attributes_, &endings);
        posix_spawnattr_setpgroup(&attributes_, 0);
        posix_spawnattr_setflags(&attributes_,
                                 POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
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
    // The spawn has one error number for the folder and the program.
    std::error_code unseen;
    if (!std::filesystem::is_directory(options.directory, unseen))
        throw InputError(fmt::format("{}: cannot be started in {}, which is no folder", command.front(),
                                     options.directory.string()));
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
    pid_t id = 0;
    Environment environment(options);
    const HeldSignals signals;
    const int failed = posix_spawnp(&id, arguments.front(), actions.get(), actions.attributes(),
                                    arguments.data(), environment.data());
    if (failed != 0)
        throw InputError(fmt::format("{}: cannot be started: {}", command.front(), std::strerror(failed)));
    Child child(id);
    out.close_end(1);
    err.close_end(1);

    ProcessResult result;
    Collector(out, err, child, options, signals, result).run();
    const int status = child.wait();
    result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return result;
}

TemporaryDirectory::TemporaryDirectory() {
    std::error_code error;
    const auto parent = std::filesystem::temp_directory_path(error);
    if (error) {
        const char* const named = std::getenv("TMPDIR");
        throw InputError(fmt::format("the folder for temporary files, TMPDIR={}, cannot be used: {}",
                                     named == nullptr ? "" : named, error.message()));
    }
    std::string pattern = (parent / "fmha-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr)
        throw InputError(fmt::format("{}: cannot be created: {}", pattern, std::strerror(errno)));
    path_ = pattern;
}

TemporaryDirectory::~TemporaryDirectory() {
    std::error_code ignored; // a left-over directory in the system's temporary folder does no harm
    std::filesystem::remove_all(path_, ignored);
}

} // namespace fmha::system
