#include "kernels/loader/plugin.hpp"

#include "dispatcher/system/files.hpp"
#include "dispatcher/system/program.hpp"
#include "dispatcher/system/sha256.hpp"
#include "dispatcher/types/error.hpp"
#include "kernels/loader/device.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <system_error>

namespace fmha::loader {
namespace {

namespace fs = std::filesystem;

/// The folder of the file that this function was linked into: the program, or a library that somebody opened. Empty where it is not known.
fs::path own_folder() {
    Dl_info info{};
    if (dladdr(reinterpret_cast<const void*>(&own_folder), &info) == 0 || info.dli_fname == nullptr)
        return {};
    std::error_code unknown;
    return fs::canonical(info.dli_fname, unknown).parent_path();
}

std::string cuda_version(int packed) {
    return fmt::format("{}.{}", packed / 1000, packed % 1000 / 10);
}

bool on_nvidia(const DeviceRuntime& runtime) {
    return runtime.platform() == "nvidia";
}

std::string no_driver(const DeviceRuntime& runtime) {
    return on_nvidia(runtime) ? "no device: there is no NVIDIA driver"
                              : "no device: HIP finds no AMD GPU (is the amdgpu driver loaded, and is this "
                                "user in the groups render and video?)";
}

/// Only CUDA's versions are packed in a way that people read.
std::string old_driver(const DeviceRuntime& runtime, const RuntimeVersions& versions) {
    if (!on_nvidia(runtime))
        return "driver too old: amdgpu is older than the ROCm that this plugin was built with";
    return fmt::format("driver too old: it supports CUDA {}, this plugin was built with CUDA {}",
                       cuda_version(versions.driver), cuda_version(versions.runtime));
}

/// Empty when no folder that this user may read has it.
fs::path find_plugin(const std::vector<fs::path>& folders, const std::string& platform) {
    std::error_code unreadable;
    for (const fs::path& folder : folders)
        if (fs::path file = folder / plugin_file(platform); fs::exists(file, unreadable)) return file;
    return {};
}

} // namespace

std::vector<std::string> platforms() {
    return {"amd", "nvidia"};
}

std::string plugin_file(const std::string& platform) {
    return fmt::format("libfmha_hip_{}.so", platform);
}

std::vector<fs::path> plugin_folders() {
    if (const char* given = std::getenv("FMHA_HIP_PLUGIN_DIR"); given != nullptr && *given != '\0')
        return {given};
    std::vector<fs::path> folders;
    for (const fs::path& base : {system::program_path().parent_path(), own_folder()}) {
        if (base.empty()) continue;
        for (const fs::path& folder :
             {base, base / "fmha", base.parent_path() / "lib", base.parent_path() / "lib" / "fmha"})
            if (std::find(folders.begin(), folders.end(), folder) == folders.end()) folders.push_back(folder);
    }
    return folders;
}

DeviceRuntime& open_plugin(const fs::path& file) {
    void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == nullptr)
        throw DeviceError(fmt::format("{} cannot be opened: {}", file.string(), dlerror()));
    auto* const entry = reinterpret_cast<RuntimeEntry*>(dlsym(library, runtime_entry));
    if (entry == nullptr)
        throw DeviceError(
            fmt::format("{} is no device plugin: it does not export {}", file.string(), runtime_entry));
    DeviceRuntime* const runtime = entry(runtime_abi);
    if (runtime == nullptr)
        throw DeviceError(fmt::format(
            "{} was built for another version of this program (its device interface is not number {})",
            file.string(), runtime_abi));
    return *runtime;
}

int count_devices(DeviceRuntime& runtime) {
    int count = 0;
    const Status status = runtime.device_count(count);
    if (status.fault == Fault::old_driver) {
        RuntimeVersions versions;
        if (const Status asked = runtime.versions(versions); !asked.ok() || versions.driver == 0)
            throw DeviceError(no_driver(runtime));
        throw DeviceError(old_driver(runtime, versions));
    }
    if (status.fault == Fault::no_device || (status.ok() && count == 0))
        throw DeviceError(no_driver(runtime));
    require(runtime, status, "counting devices");
    return count;
}

std::vector<PlatformSighting> look_for_devices(const std::vector<fs::path>& folders) {
    std::vector<PlatformSighting> sightings;
    for (const std::string& platform : platforms()) {
        PlatformSighting& seen = sightings.emplace_back();
        seen.platform = platform;
        seen.plugin = find_plugin(folders, platform);
        if (seen.plugin.empty()) {
            seen.why_none = fmt::format("no plugin: {} was not found", plugin_file(platform));
            continue;
        }
        try {
            DeviceRuntime& runtime = open_plugin(seen.plugin);
            const int count = count_devices(runtime);
            require(runtime, runtime.versions(seen.versions), "asking for versions");
            for (int device = 0; device < count; ++device)
                require(runtime, runtime.properties(device, seen.devices.emplace_back()),
                        fmt::format("describing device {}", device));
        } catch (const DeviceError& error) {
            seen.devices.clear();
            seen.why_none = error.what();
        }
    }
    return sightings;
}

std::string plugins_build(const std::vector<fs::path>& folders) {
    std::string text;
    for (const std::string& platform : platforms())
        if (const fs::path plugin = find_plugin(folders, platform); !plugin.empty())
            text += fmt::format("{} {}\n", platform, system::sha256(system::read_file(plugin)));
    return system::sha256(text);
}

DeviceRuntime& open_runtime(const std::vector<fs::path>& folders) {
    std::vector<std::string> reasons;
    for (const std::string& platform : platforms()) {
        const fs::path plugin = find_plugin(folders, platform);
        if (plugin.empty()) continue;
        try {
            DeviceRuntime& runtime = open_plugin(plugin);
            count_devices(runtime);
            return runtime;
        } catch (const DeviceError& error) {
            reasons.push_back(fmt::format("{}: {}", platform, error.what()));
        }
    }
    if (!reasons.empty()) throw DeviceError(fmt::format("{}", fmt::join(reasons, "; ")));
    std::vector<std::string> searched;
    for (const fs::path& folder : folders) searched.push_back(folder.string());
    throw DeviceError(fmt::format("no plugin: neither {} nor {} is in {} (they are built where HIP's headers "
                                  "are found; FMHA_HIP_PLUGIN_DIR names another folder)",
                                  plugin_file("amd"), plugin_file("nvidia"), fmt::join(searched, ", ")));
}

} // namespace fmha::loader
