#include "harness/run/hip_target.hpp"

#include "dispatcher/system/shell_word.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/json.hpp"
#include "harness/run/device_stage.hpp"
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
#include <charconv>
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

/// The devices of a run.
struct DeviceChoice {
    std::vector<int> numbers; ///< at least one
    enum class Said { nothing, one, several } said = Said::nothing;

    /// The options that choose them.
    std::string flags() const {
        if (said == Said::nothing) return {};
        return fmt::format(" --device{} {}", said == Said::several ? "s" : "", fmt::join(numbers, ","));
    }
};

class HipTarget final : public Target {
  public:
    HipTarget(std::shared_ptr<const loader::KernelFolder> folder, std::string arch, arch::ArchSet archs,
              std::string description, std::string driver, std::string flags, DeviceChoice chosen)
        : folder_(std::move(folder)), arch_(std::move(arch)), archs_(std::move(archs)),
          description_(std::move(description)), driver_(std::move(driver)), flags_(std::move(flags)),
          chosen_(std::move(chosen)) {}

    std::string_view name() const override { return "hip"; }
    const std::string& arch() const override { return arch_; }
    arch::ArchSet archs() const override { return archs_; }
    std::string description() const override { return description_; }
    std::string driver() const override { return driver_; }
    std::string flags() const override { return flags_ + chosen_.flags(); }
    std::vector<int> devices() const override { return chosen_.numbers; }
    std::string flags_of(std::size_t place) const override {
        return flags_ + fmt::format(" --device {}", *device_of(place));
    }
    void enter(std::size_t place) const override {
        const std::lock_guard lock(mutex_);
        session_ = std::make_unique<Session>(folder_, *device_of(place));
    }
    std::string kernel_build() const override {
        return folder_->build() + loader::plugins_build(loader::plugin_folders());
    }
    std::optional<std::string> cannot_execute(const KernelConfig& config) const override {
        return hip_target::cannot_execute(config);
    }
    StageKernel make(const KernelConfig& config) const override {
        if (const auto reason = cannot_execute(config)) throw UnsupportedInvocation(*reason);
        StageKernel kernel;
        kernel.numerics = hip_target::numerics_of(config);
        Session& device = session();
        try {
            kernel.instance = device.library.load(config, catalog::name_of(catalog::RuleSet::house, config));
            kernel.launcher = device.stage;
        } catch (const KernelNotBuilt& error) {
            kernel.not_built = error.what();
        }
        return kernel;
    }
    bool spent() const override { return session_ && session_->stage->lost(); }

  private:
    Session& session() const {
        const std::lock_guard lock(mutex_);
        if (!session_) session_ = std::make_unique<Session>(folder_, chosen_.numbers.front());
        return *session_;
    }

    std::shared_ptr<const loader::KernelFolder> folder_;
    std::string arch_;
    arch::ArchSet archs_;
    std::string description_, driver_, flags_;
    DeviceChoice chosen_;
    mutable std::mutex mutex_;
    mutable std::unique_ptr<Session> session_;
};

/// Another process's view of a device when it opens one: "sm_90", the version of the driver, and a line for reports.
struct Sighting {
    int number = 0;
    std::string arch, driver, description;
};

/// "all", or numbers with commas between them. nullopt: all.
std::optional<std::vector<int>> parse_devices(const std::string& text) {
    if (text == "all") return std::nullopt;
    std::vector<int> numbers;
    std::size_t begin = 0;
    for (std::size_t end = 0; end != std::string::npos; begin = end + 1) {
        end = text.find(',', begin);
        const std::string word = text.substr(begin, end - begin);
        int number = 0;
        const auto [rest, failure] = std::from_chars(word.data(), word.data() + word.size(), number);
        if (failure != std::errc() || rest != word.data() + word.size() || number < 0)
            throw InputError(fmt::format("--devices {}: '{}' is not the number of a device; allowed: all, or "
                                         "numbers with commas between them, such as 0,2",
                                         text, word));
        if (std::ranges::find(numbers, number) != numbers.end())
            throw InputError(fmt::format("--devices {}: device {} is named twice", text, number));
        numbers.push_back(number);
    }
    return numbers;
}

/// Throws DeviceError when a number of `asked` is not below `count`.
void require_devices(loader::DeviceRuntime& runtime, const std::vector<int>& asked, int count) {
    for (const int number : asked) {
        if (number < count) continue;
        std::vector<std::string> there;
        for (int device = 0; device < count; ++device)
            there.push_back(loader::Device(runtime, device).text());
        throw DeviceError(
            fmt::format("there is no device {}; there are: {}", number, fmt::join(there, ", ")));
    }
}

Sighting sighting_of(loader::DeviceRuntime& runtime, int number) {
    const loader::Device device(runtime, number);
    loader::RuntimeVersions versions;
    loader::require(runtime, runtime.versions(versions), "asking for versions");
    const auto& found = device.properties();
    return {number, found.arch, fmt::format("{}", versions.driver),
            fmt::format("{} ({}{}{}, {} compute units, {:.0f} GiB), HIP on {}, runtime {}, driver {}",
                        found.name, found.arch, found.features.empty() ? "" : ":", found.features,
                        found.compute_units, static_cast<double>(found.memory_bytes) / (1LL << 30),
                        runtime.platform(), versions.runtime, versions.driver)};
}

Json seen_here(const TargetOptions& options) {
    auto& runtime = loader::open_runtime(loader::plugin_folders());
    std::vector<int> numbers{options.device.value_or(0)};
    if (!options.devices.empty()) {
        const int count = loader::count_devices(runtime);
        const auto asked = parse_devices(options.devices);
        numbers = asked.value_or(std::vector<int>());
        require_devices(runtime, numbers, count);
        for (int device = 0; !asked && device < count; ++device) numbers.push_back(device);
    }
    auto all = Json::array();
    for (const int number : numbers) {
        const Sighting seen = sighting_of(runtime, number);
        all.push_back(Json{{"number", seen.number},
                           {"arch", seen.arch},
                           {"driver", seen.driver},
                           {"description", seen.description}});
    }
    return all;
}

/// Why the process that looks for devices has none to tell of.
std::string why_none(const TaskEnd& end) {
    if (end.kind == TaskEnd::Kind::bad_input) return end.answer;
    if (end.kind == TaskEnd::Kind::timed_out)
        return fmt::format("the driver does not answer: the process that looks for a device is {}",
                           end.answer);
    return fmt::format("the process that looked for a device was {}", end.answer);
}

/// The devices of a run. A runtime that is in use does not survive a fork, and workers are forked from this process.
std::vector<Sighting> look_at_devices(const TargetOptions& options) {
    if (!options.devices.empty()) static_cast<void>(parse_devices(options.devices));
    const auto look = [&](std::size_t) {
        try {
            return seen_here(options).dump();
        } catch (const Error& error) {
            throw InputError(error.what()); // the sentence as it is
        }
    };
    std::vector<Sighting> sightings;
    run_isolated(1, {.task_timeout = options.device_patience}, look, [&](std::size_t, const TaskEnd& end) {
        if (end.kind != TaskEnd::Kind::done) throw InputError(fmt::format("--target hip: {}", why_none(end)));
        for (const Json& one : Json::parse(end.answer))
            sightings.push_back({one.at("number").get<int>(), one.at("arch").get<std::string>(),
                                 one.at("driver").get<std::string>(),
                                 one.at("description").get<std::string>()});
        return true;
    });
    return sightings;
}

/// One architecture, whose kernels are planned. Throws InputError when the devices are of several.
const std::string& common_arch(const std::vector<Sighting>& seen, const TargetOptions& options) {
    for (const Sighting& device : seen) {
        if (device.arch != seen.front().arch)
            throw InputError(fmt::format(
                "--devices {}: device {} is {} and device {} is {}; one run is on one architecture",
                options.devices, seen.front().number, seen.front().arch, device.number, device.arch));
        if (!options.arch.empty() && options.arch != device.arch)
            throw InputError(fmt::format("--arch {}: the device is {} ({})", options.arch, device.arch,
                                         device.description));
    }
    return seen.front().arch;
}

/// Of one device as it is; of several that are alike with their number, otherwise each by itself.
std::string describe(const std::vector<Sighting>& seen) {
    const std::string& first = seen.front().description;
    if (seen.size() == 1) return first;
    if (std::ranges::all_of(seen, [&](const Sighting& device) { return device.description == first; }))
        return fmt::format("{} devices, each {}", seen.size(), first);
    std::string all;
    for (const Sighting& device : seen)
        all += fmt::format("{}device {}: {}", all.empty() ? "" : "; ", device.number, device.description);
    return all;
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
    if (options.device && !options.devices.empty())
        throw InputError("--device and --devices exclude one another");
    const std::vector<Sighting> seen = look_at_devices(options);
    const std::string& arch = common_arch(seen, options);
    if (const auto archs = folder->archs(); std::find(archs.begin(), archs.end(), arch) == archs.end())
        throw InputError(fmt::format(
            "wrong arch: the device is {}, {} holds kernels for {}; run `fmha build --arch {} --tier smoke`",
            arch, kernels, archs.empty() ? "no architecture" : fmt::format("{}", fmt::join(archs, ", ")),
            arch));
    DeviceChoice chosen;
    for (const Sighting& device : seen) chosen.numbers.push_back(device.number);
    chosen.said = !options.devices.empty() ? DeviceChoice::Said::several
                  : options.device         ? DeviceChoice::Said::one
                                           : DeviceChoice::Said::nothing;
    return std::make_shared<HipTarget>(
        std::move(folder), arch, archs_of(options), describe(seen), seen.front().driver,
        " --target hip --kernels-dir " + system::shell_word(kernels), std::move(chosen));
}

} // namespace fmha::harness
