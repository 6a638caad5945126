#pragma once

#include "dispatcher/include/fmha/fmha.h"
#include "tests/dispatcher/c/built_folder.hpp"
#include "tests/dispatcher/c/fake_plugin.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace fmha::test {

template <class T>
T fresh() {
    T value{};
    value.size = sizeof(T);
    value.version = FMHA_ABI_VERSION;
    return value;
}

/// A folder of built kernels, and a plugin whose device is the processor.
class DeviceInterface : public testing::Test {
  protected:
    DeviceInterface() { kernels_ = write_built_folder(folder_); }
    DeviceInterface(const DeviceInterface&) = delete;
    DeviceInterface& operator=(const DeviceInterface&) = delete;
    ~DeviceInterface() override {
        fmha_destroy(context_);
        std::filesystem::remove_all(folder_);
    }

    /// Makes one call of the fake runtime fail, "" none.
    void refuse(const char* call) const { device_.refuse(call); }
    fmha_status create(const char* arch = nullptr, std::int64_t device = 0) {
        fmha_destroy(context_);
        auto options = fresh<fmha_context_options>();
        const std::string folder = folder_.string();
        options.arch = arch;
        options.kernels_dir = folder.c_str();
        options.device = device;
        return fmha_create(&options, &context_);
    }
    std::string error() const { return fmha_last_error(context_); }

    std::filesystem::path folder_ =
        std::filesystem::temp_directory_path() / ("fmha_c_device." + std::to_string(getpid()));
    FakePlugin device_;
    std::size_t kernels_ = 0;
    fmha_context* context_ = nullptr;
};

} // namespace fmha::test
