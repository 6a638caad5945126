#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace fmha::generator {

/// Outputs that Ninja finished in a folder, and how many milliseconds each took.
using NinjaLog = std::unordered_map<std::string, std::int64_t>;

/// Empty when there is no log.
NinjaLog read_ninja_log(const std::filesystem::path& folder);

struct NinjaRun {
    int exit_code = 0;
    bool interrupted = false;
    double seconds = 0.0;
    std::unordered_set<std::string> failed; ///< outputs
    std::string output;
};

/// Runs Ninja in a folder, going on after failures. `progress(done, all, output)` is told of every edge that ends.
/// `jobs` 0 means one for each hardware thread. Throws InputError when Ninja is not installed.
NinjaRun run_ninja(const std::filesystem::path& folder, const std::string& file, const std::string& target,
                   int jobs, const std::function<void(std::size_t, std::size_t, std::string_view)>& progress,
                   const std::function<bool()>& stop);

} // namespace fmha::generator
