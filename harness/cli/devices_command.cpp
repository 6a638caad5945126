#include "dispatcher/types/json.hpp"
#include "harness/cli/commands.hpp"
#include "kernels/loader/plugin.hpp"

#include <fmt/ostream.h>

#include <algorithm>

namespace fmha::cli {
namespace {

using loader::DeviceProperties;
using loader::PlatformSighting;

std::string line_of(std::size_t number, const DeviceProperties& device) {
    return fmt::format("{}  {}  {}{}{}  {} compute units, {:.0f} GiB, LDS {} KiB, L2 {:.0f} MiB, waves of {}",
                       number, device.name, device.arch, device.features.empty() ? "" : ":", device.features,
                       device.compute_units, static_cast<double>(device.memory_bytes) / (1LL << 30),
                       device.lds_bytes / 1024, static_cast<double>(device.l2_bytes) / (1LL << 20),
                       device.wave_size);
}

Json json_of(const PlatformSighting& seen) {
    auto devices = Json::array();
    for (const DeviceProperties& device : seen.devices)
        devices.push_back({{"name", device.name},
                           {"arch", device.arch},
                           {"features", device.features},
                           {"compute_units", device.compute_units},
                           {"wave_size", device.wave_size},
                           {"lds_bytes", device.lds_bytes},
                           {"l2_bytes", device.l2_bytes},
                           {"memory_bytes", device.memory_bytes}});
    return {{"platform", seen.platform},
            {"plugin", seen.plugin.string()},
            {"runtime_version", seen.versions.runtime},
            {"driver_version", seen.versions.driver},
            {"devices", devices},
            {"why_none", seen.why_none}};
}

/// The devices that `--target hip` would find, or the reason why there are none.
class DevicesCommand final : public Command {
  public:
    std::string_view name() const override { return "devices"; }
    std::string_view summary() const override {
        return "List the GPUs that kernels can run on, or say why there are none";
    }
    std::string_view example() const override { return "fmha devices"; }
    void declare(OptionSet& options) override { options.format(format_); }
    int run(const Streams& streams) override {
        const auto sightings = loader::look_for_devices(loader::plugin_folders());
        if (format_ == OutputFormat::json) {
            auto all = Json::array();
            for (const PlatformSighting& seen : sightings) all.push_back(json_of(seen));
            fmt::print(streams.out, "{}\n", all.dump(1));
        } else {
            for (const PlatformSighting& seen : sightings) print(seen, streams);
        }
        const bool any = std::any_of(sightings.begin(), sightings.end(),
                                     [](const PlatformSighting& seen) { return !seen.devices.empty(); });
        return any ? all_well : check_failed;
    }

  private:
    static void print(const PlatformSighting& seen, const Streams& streams) {
        if (seen.devices.empty()) {
            fmt::print(streams.out, "{:8}{}\n", seen.platform, seen.why_none);
            return;
        }
        fmt::print(streams.out, "{:8}{}, runtime {}, driver {}\n", seen.platform, seen.plugin.string(),
                   seen.versions.runtime, seen.versions.driver);
        for (std::size_t n = 0; n < seen.devices.size(); ++n)
            fmt::print(streams.out, "{:8}{}\n", "", line_of(n, seen.devices[n]));
    }

    OutputFormat format_ = OutputFormat::text;
};

} // namespace

std::unique_ptr<Command> make_devices_command() {
    return std::make_unique<DevicesCommand>();
}

} // namespace fmha::cli
