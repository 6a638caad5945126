#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace fmha::parity {

/// What a program left behind.
struct ProcessResult {
    int exit_code = 0; ///< 128 + n when signal n ended it
    bool timed_out = false;
    std::string out, err;
};

/// Runs a program without a shell and collects its output. A program without '/' is looked up on the PATH.
/// After `time` it is killed. Throws InputError when it cannot be started.
ProcessResult run_process(const std::vector<std::string>& command, const std::filesystem::path& directory,
                          std::chrono::seconds time);

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

} // namespace fmha::parity
