#pragma once

#include "harness/cli/verify_command.hpp"
#include "tests/support/command_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <unistd.h>
#include <vector>

/// Command lines on kernels of the test's own.
namespace fmha::cli::test {

/// `fmha verify` on the shipped cases with kernels from Source(args…).
template <class Source, class... Args>
Ran verify_on(const std::vector<std::string>& arguments, Args... args) {
    std::vector<std::unique_ptr<Command>> commands;
    commands.push_back(make_verify_command([=](const auto&, const std::string&, catalog::FamilySet) {
        return std::make_unique<Source>(args...);
    }));
    std::vector<std::string> all{"verify", "--cases-root", FMHA_CASES_DIR};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const auto has = [&](const char* option) {
        return std::find(all.begin(), all.end(), option) != all.end();
    };
    if (!has("--html") && !has("--list")) {
        const auto page = std::filesystem::temp_directory_path() / fmt::format("fmha_{}.html", getpid());
        all.insert(all.end(), {"--html", page.string()});
    }
    return run(std::move(commands), all);
}

/// A folder for one test.
class Scratch {
  public:
    Scratch()
        : path_(std::filesystem::temp_directory_path() / fmt::format("fmha_command_test_{}", getpid())) {
        std::filesystem::remove_all(path_);
        std::filesystem::create_directories(path_);
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch() { std::filesystem::remove_all(path_); }
    std::string operator/(const std::string& name) const { return (path_ / name).string(); }

  private:
    std::filesystem::path path_;
};

} // namespace fmha::cli::test
