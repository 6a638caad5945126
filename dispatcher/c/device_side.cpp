#include "dispatcher/c/device_side.hpp"

#include "dispatcher/types/error.hpp"
#include "kernels/loader/kernel_library.hpp"
#include "kernels/loader/plugin.hpp"

#include <fmt/format.h>

#include <limits>
#include <unordered_map>

namespace fmha::c {

namespace {

int checked_number(std::int64_t device) {
    if (device < 0 || device > std::numeric_limits<int>::max())
        throw InputError(fmt::format("options.device is {}; allowed: 0 and above", device));
    return static_cast<int>(device);
}

} // namespace

struct DeviceSide::Impl {
    std::shared_ptr<const loader::KernelFolder> folder;
    loader::Device device;
    ArchName arch;
    std::vector<KernelConfig> kernels;
    loader::KernelLibrary library;
    std::unordered_map<KernelConfig, std::shared_ptr<const KernelInstance>, FieldHash> loaded;

    Impl(const std::filesystem::path& path, std::int64_t number)
        : folder(std::make_shared<const loader::KernelFolder>(path)),
          device(loader::open_runtime(loader::plugin_folders()), checked_number(number)),
          arch(device.properties().arch), kernels(folder->configs(arch)), library(folder, device) {}
};

DeviceSide::DeviceSide(const std::filesystem::path& folder, std::int64_t device, std::string_view arch)
    : impl_(std::make_unique<Impl>(folder, device)) {
    if (!arch.empty() && impl_->arch.view() != arch)
        throw InputError(
            fmt::format("options.arch is {}, but {} is {}", arch, impl_->device.text(), impl_->arch.view()));
}

DeviceSide::~DeviceSide() = default;

const ArchName& DeviceSide::arch() const {
    return impl_->arch;
}

const std::vector<KernelConfig>& DeviceSide::kernels() const {
    return impl_->kernels;
}

void DeviceSide::launch(const KernelConfig& config, const Invocation& arguments, void* stream) {
    // Others of the caller's libraries may have made another device current.
    loader::DeviceRuntime& runtime = impl_->device.runtime();
    loader::require(runtime, runtime.set_device(impl_->device.index()),
                    fmt::format("selecting {}", impl_->device.text()));
    auto& kernel = impl_->loaded[config];
    if (kernel == nullptr) kernel = impl_->library.load(config);
    kernel->launch(arguments, {stream});
}

} // namespace fmha::c
