#pragma once

#include "harness/cli/catalogue_choice.hpp"
#include "harness/cli/memory_limit.hpp"
#include "harness/cli/options.hpp"
#include "harness/cli/target_choice.hpp"
#include "harness/run/case_runner.hpp"
#include "harness/run/targets.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace fmha::cli {

/// Where cases run and with which kernels, for the commands that judge cases, so that the options of a red line can be taken over
/// from one to another.
class RunChoice {
  public:
    void declare(OptionSet& options);
    /// --devices, for a command that shares its cases among devices.
    void declare_devices(OptionSet& options);

    /// Throws InputError for values that are out of range, and for --kernel where one kernel runs; `lists` where the command has
    /// --catalogue.
    void check(const CatalogueChoice* lists = nullptr) const;
    /// Throws InputError for options that the target does not take.
    std::shared_ptr<const harness::Target> target(int jobs) const;
    harness::CaseRunOptions of_case(const harness::Target& target, int jobs) const;
    const std::string& kernels_dir() const { return target_.kernels_dir(); } ///< as it was given
    const std::string& where() const { return where_; }
    const std::string& target_name() const { return target_.name(); }
    const std::string& devices() const { return devices_; }    ///< as they were given
    const std::string& arch() const { return target_.arch(); } ///< as it was given
    const ArchFiles& arch_files() const { return target_.arch_files(); }
    const std::string& kernels() const { return kernels_; }
    const std::string& kernel_filter() const { return kernel_filter_; }
    std::int64_t memory_limit() const { return memory_.bytes(); } ///< 0 = none
    std::filesystem::path root() const;
    std::chrono::seconds timeout() const;

  private:
    TargetChoice target_;
    std::string root_, kernels_ = "planned", kernel_filter_, where_, devices_;
    static constexpr std::int64_t usual_timeout = 600;
    std::int64_t repeats_ = 0, warm_up_ = 0, timeout_ = usual_timeout;
    MemoryLimit memory_;
};

} // namespace fmha::cli
