#include "harness/run/hip_target.hpp"

#include "dispatcher/types/error.hpp"
#include "harness/run/device_stage.hpp"
#include "harness/run/shell_word.hpp"
#include "harness/run/worker_pool.hpp"
#include "kernels/built/manifest.hpp"
#include "kernels/catalog/catalog.hpp"
#include "kernels/loader/kernel_library.hpp"
#include "kernels/loader/plugin.hpp"
#include "kernels/targets/hip/cannot_execute.hpp"
#include "kernels/targets/hip/numerics.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <mutex>

namespace fmha::harness {
namespace {

/// Everything that this process has on the device.
struct Session {
    Session(const std::shared_ptr<const loader::KernelFolder>& folder, int index)
        : device(loader::open_runtime(loader::plugin_folders()), index), library(folder, device),
          stage(std::make_shared<DeviceStage>(device)) {}

    loader::Device device;
    loader::KernelLibrary library;
    std::shared_ptr<DeviceStage> stage;
};

class HipTarget final : public Target {
  public:
    HipTarget(std::shared_ptr<const loader::KernelFolder> folder, std::string arch, arch::ArchSet archs,
              std::string description, std::string driver, std::string flags, int index)
        : folder_(std::move(folder)), arch_(std::move(arch)), archs_(std::move(archs)),
          description_(std::move(description)), driver_(std::move(driver)), flags_(std::move(flags)),
          index_(index) {}

    std::string_view name() const override { return "hip"; }
    const std::string& arch() const override { return arch_; }
    arch::ArchSet archs() const override { return archs_; }
    std::string description() const override { return description_; }
    std::string driver() const override { return driver_; }
    std::string flags() const override { return flags_; }
    std::string kernel_build() const override {
        return folder_->build() + loader::plugins_build(loader::plugin_folders());
    }
    std::optional<std::string> cannot_execute(const KernelConfig& config) const override {
        return hip_target::cannot_execute(config);
    }
    StageKernel make(const KernelConfig& config) const override {
        if (const auto reason = cannot_execute(config)) throw UnsupportedInvocation(*reason);
        StageKernel candidate;
        candidate.numerics = hip_target::numerics_of(config);
        Session& device = session();
        try {
            candidate.instance =
                device.library.load(config, catalog::name_of(catalog::RuleSet::house, config));
            candidate.launcher = device.stage;
        } catch (const KernelNotBuilt& error) {
            candidate.not_built = error.what();
        }
        return candidate;
    }
    bool spent() const override { return session_ && session_->stage->lost(); }

  private:
    Session& session() const {
        const std::lock_guard lock(mutex_);
        if (!session_) session_ = std::make_unique<Session>(folder_, index_);
        return *session_;
    }

    std::shared_ptr<const loader::KernelFolder> folder_;
    std::string arch_;
    arch::ArchSet archs_;
    std::string description_, driver_, flags_;
    int index_;
    mutable std::mutex mutex_;
    mutable std::unique_ptr<Session> session_;
};

/// What another process sees when it opens a device: "sm_90", the version of the driver, and a line for reports.
struct Sighting {
    std::string arch, driver, description;
};

/// A runtime that is in use does not survive a fork, and workers are forked from this process.
Sighting look_at_device(int index, std::chrono::milliseconds patience) {
    const auto look = [index](std::size_t) -> std::string {
        try {
            auto& runtime = loader::open_runtime(loader::plugin_folders());
            const loader::Device device(runtime, index);
            loader::RuntimeVersions versions;
            loader::require(runtime, runtime.versions(versions), "asking for versions");
            const auto& found = device.properties();
            return fmt::format(
                "+{}\n{}\n{} ({}{}{}, {} compute units, {:.0f} GiB), HIP on {}, runtime {}, driver {}",
                found.arch, versions.driver, found.name, found.arch, found.features.empty() ? "" : ":",
                found.features, found.compute_units, static_cast<double>(found.memory_bytes) / (1LL << 30),
                runtime.platform(), versions.runtime, versions.driver);
        } catch (const Error& error) {
            return fmt::format("-{}", error.what());
        }
    };
    std::string seen;
    run_isolated(1, {.task_timeout = patience}, look, [&](std::size_t, const TaskEnd& end) {
        if (end.kind == TaskEnd::Kind::done)
            seen = end.answer;
        else if (end.kind == TaskEnd::Kind::timed_out)
            seen = fmt::format("-the driver does not answer: the process that looks for a device is {}",
                               end.answer);
        else
            seen = fmt::format("-the process that looked for a device was {}", end.answer);
        return true;
    });
    if (seen.front() == '-') throw InputError(fmt::format("--target hip: {}", seen.substr(1)));
    const auto driver = seen.find('\n');
    const auto line = seen.find('\n', driver + 1);
    return {seen.substr(1, driver - 1), seen.substr(driver + 1, line - driver - 1), seen.substr(line + 1)};
}

} // namespace

std::shared_ptr<const Target> make_hip_target(const TargetOptions& options) {
    const std::string kernels = options.kernels_dir.empty() ? built::default_folder : options.kernels_dir;
    if (!std::filesystem::exists(kernels))
        throw InputError(fmt::format("--target hip needs built kernels and there is no folder {}: run `fmha "
                                     "build --arch ARCH --out {}`, "
                                     "or name another with --kernels-dir",
                                     kernels, kernels));
    auto folder = std::make_shared<const loader::KernelFolder>(kernels);
    const int index = options.device.value_or(0);
    const Sighting seen = look_at_device(index, options.device_patience);
    if (!options.arch.empty() && options.arch != seen.arch)
        throw InputError(
            fmt::format("--arch {}: the device is {} ({})", options.arch, seen.arch, seen.description));
    if (const auto archs = folder->archs(); std::find(archs.begin(), archs.end(), seen.arch) == archs.end())
        throw InputError(fmt::format(
            "wrong arch: the device is {}, {} holds kernels for {}; run `fmha build --arch {}`", seen.arch,
            kernels, archs.empty() ? "no architecture" : fmt::format("{}", fmt::join(archs, ", ")),
            seen.arch));
    std::string flags = " --target hip --kernels-dir " + shell_word(kernels);
    if (options.device) flags += fmt::format(" --device {}", index);
    return std::make_shared<HipTarget>(std::move(folder), seen.arch, archs_of(options), seen.description,
                                       seen.driver, std::move(flags), index);
}

} // namespace fmha::harness
