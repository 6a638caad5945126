#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fmha::system {

/// The output and the end of a program.
struct ProcessResult {
    int exit_code = 0; ///< 128 + n when signal n ended it
    bool timed_out = false;
    bool stopped = false; ///< because the caller asked for it
    bool wrote_too_much = false;
    std::string out, err;
};

struct ProcessOptions {
    std::filesystem::path directory = ".";
    std::chrono::milliseconds time = std::chrono::hours(24); ///< after which it and its children are ended
    std::vector<std::string> environment{};                  ///< "NAME=value", beside this process's own
    /// The names of this process's own variables that it gets; nullopt: all.
    std::optional<std::vector<std::string>> inherited{};
    std::size_t most_output =
        0; ///< bytes of both streams after which it and its children are ended; 0: any number
    std::function<void(std::string_view)> on_line{}; ///< every line of standard output when it is complete
    /// Asked a few times a second; once it says true the program and its children get SIGINT, and are waited for.
    std::function<bool()> stop{};
};

/// Runs a program without a shell and collects its output. A program without '/' is looked up on the PATH. SIGINT, SIGTERM and SIGHUP
/// end it as usual, also where this process blocks or ignores them. It leads a process group of its own, so that its children can be
/// ended with it: SIGTERM at the end of its time, SIGKILL two seconds later. A signal of these three that this thread gets meanwhile
/// goes to the group first and acts here when the program has ended, as a terminal's would. A group that goes on for two seconds after
/// one of them or after `stop` is ended as at the end of its time. An exception of `on_line` or `stop` kills the group before it leaves.
/// Throws InputError when it cannot be started.
ProcessResult run_process(const std::vector<std::string>& command, const ProcessOptions& options = {});

/// A new directory that is removed with its content at the end of the scope.
class TemporaryDirectory {
  public:
    TemporaryDirectory();
    ~TemporaryDirectory();
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
    TemporaryDirectory(TemporaryDirectory&&) = delete;
    TemporaryDirectory& operator=(TemporaryDirectory&&) = delete;
    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

} // namespace fmha::system
