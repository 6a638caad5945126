#include "kernels/loader/kernel_folder.hpp"

#include "dispatcher/system/sha256.hpp"

#include <fmt/format.h>

#include <set>

namespace fmha::loader {

KernelFolder::KernelFolder(std::filesystem::path folder)
    : path_(std::move(folder)), manifest_(built::read_manifest(path_)) {
    built::each_kernel(manifest_, [this](const built::BuiltKernel& kernel, const built::CodeObject& object) {
        index_[kernel.config] = {&object, &kernel};
    });
}

KernelFolder::Found KernelFolder::find(const KernelConfig& config) const {
    const auto found = index_.find(config);
    return found == index_.end() ? Found{} : found->second;
}

std::string KernelFolder::why_missing(const KernelConfig& config, const std::string& name) const {
    for (const auto& missing : manifest_.missing)
        if (missing.config == config)
            return fmt::format("kernel {} was planned but could not be built into {}: {}", name,
                               path_.string(), missing.reason);
    return fmt::format(
        "kernel {0} was planned but is not in {1}: run `fmha build --arch {2} --kernel {0} --out {1}`", name,
        path_.string(), config.arch.view());
}

std::vector<KernelConfig> KernelFolder::configs(const ArchName& arch) const {
    std::vector<KernelConfig> found;
    for (const auto& object : manifest_.objects)
        if (object.arch == arch)
            for (const auto& kernel : object.kernels) found.push_back(kernel.config);
    return found;
}

std::vector<std::string> KernelFolder::archs() const {
    std::set<std::string> names;
    for (const auto& object : manifest_.objects) names.emplace(object.arch.view());
    return {names.begin(), names.end()};
}

std::string KernelFolder::build() const {
    std::set<std::string> keys;
    for (const auto& object : manifest_.objects) keys.insert(object.key);
    std::string text;
    for (const std::string& key : keys) text += key + '\n';
    return system::sha256(text);
}

} // namespace fmha::loader
