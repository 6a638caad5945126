#pragma once

#include "dispatcher/types/kernel_instance.hpp"
#include "kernels/loader/device.hpp"
#include "kernels/loader/kernel_folder.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace fmha::loader {

/// The kernels of a folder on one device. Code objects are loaded when the first of their kernels is asked for and stay as
/// long as the library or one of its kernels.
class KernelLibrary {
  public:
    /// Throws DeviceError when the folder has kernels, but none for the device's architecture.
    KernelLibrary(std::shared_ptr<const KernelFolder> folder, const Device& device);

    /// The kernel of `config`; its launches take device pointers and a stream handle of the device's runtime. Throws
    /// KernelNotBuilt, which calls it `name` (empty: its identifier), when the folder does not have it, DeviceError when its code
    /// object cannot be loaded.
    std::shared_ptr<const KernelInstance> load(const KernelConfig& config, const std::string& name = {});

  private:
    std::shared_ptr<const Module> module_of(const built::CodeObject& object);

    std::shared_ptr<const KernelFolder> folder_;
    Device device_;
    std::mutex mutex_;
    std::map<std::string, std::shared_ptr<const Module>> modules_; ///< by file
};

} // namespace fmha::loader
