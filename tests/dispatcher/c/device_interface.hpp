#pragma once

#include "dispatcher/include/fmha/fmha.h"
#include "tests/dispatcher/c/built_folder.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
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
    DeviceInterface() {
        kernels_ = write_built_folder(folder_);
        setenv("FMHA_HIP_PLUGIN_DIR", FMHA_FAKE_PLUGIN_DIR, 1);
        refuse("");
    }
    DeviceInterface(const DeviceInterface&) = delete;
    DeviceInterface& operator=(const DeviceInterface&) = delete;
    ~DeviceInterface() override {
        fmha_destroy(context_);
        std::filesystem::remove_all(folder_);
    }

    /// Makes one call of the fake runtime fail, "" none.
    static void refuse(const char* call) {
        static const auto set = reinterpret_cast<void (*)(const char*)>(
            dlsym(dlopen(FMHA_FAKE_PLUGIN_DIR "/libfmha_hip_amd.so", RTLD_NOW), "fake_device_refuse"));
        set(call);
    }
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
    std::size_t kernels_ = 0;
    fmha_context* context_ = nullptr;
};

} // namespace fmha::test
