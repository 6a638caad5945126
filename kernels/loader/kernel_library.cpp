#include "kernels/loader/kernel_library.hpp"

#include "dispatcher/system/files.hpp"
#include "kernels/loader/hip_kernel.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace fmha::loader {
namespace {

std::string content_of(const std::filesystem::path& file) {
    try {
        return system::read_file(file);
    } catch (const InputError& error) {
        throw KernelNotBuilt(fmt::format(
            "the manifest names a code object that cannot be read, {}: build it again", error.what()));
    }
}

} // namespace

KernelLibrary::KernelLibrary(std::shared_ptr<const KernelFolder> folder, const Device& device)
    : folder_(std::move(folder)), device_(device) {
    const auto archs = folder_->archs();
    const std::string& own = device_.properties().arch;
    if (!archs.empty() && std::find(archs.begin(), archs.end(), own) == archs.end())
        throw DeviceError(fmt::format("wrong arch: {} is {}, {} holds kernels for {}", device_.text(), own,
                                      folder_->path().string(), fmt::join(archs, ", ")));
}

std::shared_ptr<const KernelInstance> KernelLibrary::load(const KernelConfig& config,
                                                          const std::string& name) {
    const KernelFolder::Found found = folder_->find(config);
    if (found.kernel == nullptr)
        throw KernelNotBuilt(folder_->why_missing(config, name.empty() ? identifier(config) : name));
    const std::lock_guard lock(mutex_);
    return std::make_shared<HipKernel>(*found.kernel, device_, module_of(*found.object));
}

std::shared_ptr<const Module> KernelLibrary::module_of(const built::CodeObject& object) {
    auto& module = modules_[object.file];
    if (!module) {
        const auto file = folder_->path() / object.file;
        module = std::make_shared<Module>(device_, content_of(file), file.string());
    }
    return module;
}

} // namespace fmha::loader
