#pragma once

#include "harness/cli/verify_command.hpp"
#include "harness/npy/npy.hpp"
#include "reference/numerics/formats.hpp"
#include "tests/support/command_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
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
    if (has("--html") || has("--list")) return run(std::move(commands), all);
    // The usual page would stand in the folder of the build.
    const auto page = std::filesystem::temp_directory_path() / fmt::format("fmha_{}.html", getpid());
    all.insert(all.end(), {"--html", page.string()});
    const Ran ran = run(std::move(commands), all);
    std::filesystem::remove(page);
    return ran;
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

/// Gives an output of `fmha reference` the type that a kernel writes: fp16 or fp32. NaN stays NaN.
inline void round_to(harness::NpyType type, const std::string& file) {
    const harness::NpyArray exact = harness::read_npy(file);
    const int bytes = harness::npy_bytes(type);
    harness::NpyArray rounded{type, exact.shape,
                              std::vector<unsigned char>(static_cast<std::size_t>(exact.elements() * bytes))};
    for (std::int64_t i = 0; i < exact.elements(); ++i) {
        double value = 0.0;
        std::memcpy(&value, exact.bytes.data() + 8 * i, 8);
        const std::uint32_t code = reference::encode(
            type == harness::NpyType::float16 ? ElementType::fp16 : ElementType::fp32, value);
        std::memcpy(rounded.bytes.data() + bytes * i, &code, static_cast<std::size_t>(bytes));
    }
    harness::write_npy(file, rounded);
}

} // namespace fmha::cli::test
