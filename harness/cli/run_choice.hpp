#pragma once

#include "harness/cli/options.hpp"
#include "harness/run/case_runner.hpp"
#include "harness/run/targets.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace fmha::cli {

/// Where cases run and with which kernels, for commands that choose their cases themselves. The options have the names that
/// they have in `fmha verify`, so that those of a red line can be taken over.
class RunChoice {
  public:
    void declare(OptionSet& options);

    /// Throws InputError for options that the target does not take.
    std::shared_ptr<const harness::Target> target(int jobs) const;
    harness::CaseRunOptions of_case(const harness::Target& target, int jobs) const;
    const std::string& where() const { return where_; }
    const std::string& target_name() const { return target_; }
    const std::string& kernels() const { return kernels_; }
    std::filesystem::path root() const;
    std::chrono::seconds timeout() const;

  private:
    std::string root_, target_ = harness::target_names().front(), arch_, kernels_dir_, kernels_ = "planned",
                       kernel_filter_, where_;
    std::optional<std::int64_t> device_;
    std::int64_t repeats_ = 0, timeout_ = 600, memory_gib_ = 8;
};

} // namespace fmha::cli
