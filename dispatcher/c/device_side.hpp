#pragma once

#include "dispatcher/types/kernel_config.hpp"
#include "dispatcher/types/kernel_instance.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

namespace fmha::c {

/// The kernels of a build's folder on one device, as a context launches them.
class DeviceSide {
  public:
    /// Reads the folder and opens the device. `arch` is the architecture that the caller expects, empty for that of the device.
    /// Throws InputError for a folder without manifest, a device number that is none or an architecture that is not the
    /// device's, DeviceError for everything that the device or its runtime refuses.
    DeviceSide(const std::filesystem::path& folder, std::int64_t device, std::string_view arch);
    ~DeviceSide();
    DeviceSide(const DeviceSide&) = delete;
    DeviceSide& operator=(const DeviceSide&) = delete;

    const ArchName& arch() const;
    /// The folder's kernels for the device's architecture.
    const std::vector<KernelConfig>& kernels() const;
    /// Starts the kernel on `stream`; its code object is loaded at its first launch. Throws DeviceError, and
    /// UnsupportedInvocation for arguments that the kernel does not take.
    void launch(const KernelConfig& config, const Invocation& arguments, void* stream);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace fmha::c
