#pragma once

#include "kernels/loader/device_runtime.hpp"

#include <filesystem>
#include <string>
#include <vector>

/// Finds and opens the runtimes, one shared library per HIP platform.
namespace fmha::loader {

/// The HIP platforms, in the order in which they are asked for a device.
std::vector<std::string> platforms();

/// "libfmha_hip_amd.so"
std::string plugin_file(const std::string& platform);

/// Where plugins are looked for: FMHA_HIP_PLUGIN_DIR alone when it is set, otherwise the folders of this program and of the
/// library that this code is in, and of each: itself, its fmha/, ../lib and ../lib/fmha.
std::vector<std::filesystem::path> plugin_folders();

/// Opens one plugin. It stays open, because runtimes do not bear being closed. Throws DeviceError: a library of it that is
/// missing, not a plugin, another ABI.
DeviceRuntime& open_plugin(const std::filesystem::path& file);

/// Devices of one platform; throws DeviceError in a sentence when there is none or its driver is too old.
int count_devices(DeviceRuntime& runtime);

/// The devices of one platform on this machine.
struct PlatformSighting {
    std::string platform;
    std::filesystem::path plugin; ///< empty: there is none
    RuntimeVersions versions;
    std::vector<DeviceProperties> devices;
    std::string why_none; ///< one sentence when there is no device
};

/// Every platform of `platforms()`, unusable ones too. Touches the runtimes: not before a fork.
std::vector<PlatformSighting> look_for_devices(const std::vector<std::filesystem::path>& folders);

/// SHA-256 of the plugins in `folders`, of which `open_runtime` opens one. Throws InputError when one cannot be read.
std::string plugins_build(const std::vector<std::filesystem::path>& folders);

/// The first runtime of the plugins in `folders` that has a device. Throws DeviceError with the fault of each platform.
DeviceRuntime& open_runtime(const std::vector<std::filesystem::path>& folders);

} // namespace fmha::loader
