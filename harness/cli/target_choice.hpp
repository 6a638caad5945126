#pragma once

#include "harness/cli/arch_files.hpp"
#include "harness/cli/options.hpp"
#include "harness/cli/within.hpp"
#include "harness/run/targets.hpp"
#include "kernels/arch/usual_arch.hpp"

#include <cstdint>
#include <fmt/format.h>
#include <optional>
#include <string>

namespace fmha::cli {

/// Where kernels run: --target and the options that belong to it.
class TargetChoice {
  public:
    void declare(OptionSet& options) {
        options.choice("--target", name_, harness::target_names(), "Where kernels run");
        options.option(
            "--arch", arch_,
            fmt::format("Architecture to plan for (default: {}, or the device's)", arch::usual_arch));
        arch_files_.declare(options);
        options.option("--kernels-dir", kernels_dir_,
                       "With --target hip: folder that `fmha build` filled (default: fmha-kernels)");
        options.option("--device", device_, "With --target hip: number of the device (default: 0)");
    }

    /// Throws InputError for a number that is out of range.
    void check() const { require_within("--device", device_); }

    const std::string& name() const { return name_; }
    const std::string& arch() const { return arch_; } ///< as it was given
    const ArchFiles& arch_files() const { return arch_files_; }
    const std::string& kernels_dir() const { return kernels_dir_; } ///< as it was given
    /// Throws InputError for a folder of architectures that cannot be used.
    harness::TargetOptions options() const {
        harness::TargetOptions options{arch_, kernels_dir_};
        if (device_) options.device = static_cast<int>(*device_);
        if (!arch_files_.folder().empty()) options.archs = arch_files_.load();
        return options;
    }

  private:
    std::string name_ = harness::target_names().front(), arch_, kernels_dir_;
    ArchFiles arch_files_;
    std::optional<std::int64_t> device_;
};

} // namespace fmha::cli
