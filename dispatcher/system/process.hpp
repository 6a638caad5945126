#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace fmha::system {

/// What a program left behind.
struct ProcessResult {
    int exit_code = 0; ///< 128 + n when signal n ended it
    bool timed_out = false;
    bool stopped = false; ///< because the caller asked for it
    std::string out, err;
};

struct ProcessOptions {
    std::filesystem::path directory = ".";
    std::chrono::seconds time = std::chrono::hours(24); ///< after which it is killed
    std::vector<std::string> environment{};             ///< "NAME=value", beside what this process has
    std::function<void(std::string_view)> on_line{};    ///< every line of standard output when it is complete
    /// Asked a few times a second; once it says true the program gets SIGINT, and is waited for.
    std::function<bool()> stop{};
};

/// Runs a program without a shell and collects its output. A program without '/' is looked up on the PATH. It starts
/// with no signal blocked, whatever this process blocks. Throws InputError when it cannot be started.
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
