#pragma once

#include "kernels/built/manifest.hpp"

#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

namespace fmha::loader {

/// The kernels of a build's folder, indexed by configuration. Needs no device.
class KernelFolder {
  public:
    /// Reads the manifest; throws InputError.
    explicit KernelFolder(std::filesystem::path folder);
    KernelFolder(const KernelFolder&) = delete;
    KernelFolder& operator=(const KernelFolder&) = delete;
    ~KernelFolder() = default;

    struct Found {
        const built::CodeObject* object = nullptr; ///< nullptr: there is no such kernel
        const built::BuiltKernel* kernel = nullptr;
    };
    Found find(const KernelConfig& config) const;

    /// One sentence on a kernel that `find` does not find: the build's reason, or the command that builds it.
    /// `name` is the catalogue's.
    std::string why_missing(const KernelConfig& config, const std::string& name) const;

    /// Its kernels for one architecture, in the order of the manifest.
    std::vector<KernelConfig> configs(const ArchName& arch) const;
    /// Architectures of its kernels, sorted.
    std::vector<std::string> archs() const;
    /// SHA-256 of everything that its code objects follow from: the same for two builds of the same kernels.
    std::string build() const;
    std::size_t size() const { return index_.size(); }
    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
    built::Manifest manifest_;
    std::unordered_map<KernelConfig, Found, FieldHash> index_;
};

} // namespace fmha::loader
