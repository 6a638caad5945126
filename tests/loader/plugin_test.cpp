// Finding and opening plugins. The real ones are opened too, on this machine without a device.

#include "dispatcher/system/process.hpp"
#include "dispatcher/types/error.hpp"
#include "kernels/loader/plugin.hpp"
#include "tests/loader/fake_runtime.hpp"
#include "tests/support/sentence_of.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace fmha::loader::test {
namespace {

using fmha::test::sentence_of;
using testing::AllOf;
using testing::HasSubstr;
namespace fs = std::filesystem;

/// A folder with test libraries under the names of plugins.
class Plugins {
  public:
    Plugins& put(const std::string& platform, const char* library) {
        fs::copy_file(library, folder_.path() / plugin_file(platform));
        return *this;
    }
    std::vector<fs::path> folders() const { return {folder_.path()}; }

  private:
    system::TemporaryDirectory folder_;
};

TEST(Plugin, IsMissing) {
    const Plugins none;
    EXPECT_THAT(sentence_of<DeviceError>([&] { open_runtime(none.folders()); }),
                AllOf(HasSubstr("no plugin: neither libfmha_hip_amd.so nor libfmha_hip_nvidia.so is in "),
                      HasSubstr(none.folders().front().string()), HasSubstr("FMHA_HIP_PLUGIN_DIR")));
}

TEST(Plugin, IsNotInAFolderThatCannotBeReached) {
    const system::TemporaryDirectory folder;
    const fs::path loop = folder.path() / "loop";
    fs::create_symlink(loop, loop);
    EXPECT_THAT(sentence_of<DeviceError>([&] { open_runtime({loop}); }),
                AllOf(HasSubstr("no plugin: neither "), HasSubstr(loop.string())));
}

TEST(Plugin, OfAnotherVersion) {
    Plugins plugins;
    plugins.put("amd", FMHA_OLD_PLUGIN);
    EXPECT_THAT(sentence_of<DeviceError>([&] { open_runtime(plugins.folders()); }),
                AllOf(HasSubstr("amd: "), HasSubstr("was built for another version of this program")));
}

TEST(Plugin, ThatIsNone) {
    Plugins plugins;
    plugins.put("nvidia", FMHA_OTHER_LIBRARY);
    EXPECT_THAT(sentence_of<DeviceError>([&] { open_runtime(plugins.folders()); }),
                HasSubstr("is no device plugin: it does not export fmha_device_runtime"));
}

TEST(Plugin, ThatCannotBeOpened) {
    Plugins plugins;
    std::ofstream(plugins.folders().front() / plugin_file("amd")) << "hello";
    EXPECT_THAT(sentence_of<DeviceError>([&] { open_runtime(plugins.folders()); }),
                HasSubstr("cannot be opened: "));
}

TEST(Plugin, ThatHasADeviceWinsOverOneThatHasNot) {
    Plugins plugins;
    plugins.put("amd", FMHA_OLD_PLUGIN).put("nvidia", FMHA_FAKE_PLUGIN);
    DeviceRuntime& runtime = open_runtime(plugins.folders());
    EXPECT_EQ(count_devices(runtime), 1);
}

TEST(Plugin, FoldersCanBeChosen) {
    ASSERT_EQ(setenv("FMHA_HIP_PLUGIN_DIR", "/somewhere", 1), 0);
    EXPECT_THAT(plugin_folders(), testing::ElementsAre("/somewhere"));
    ASSERT_EQ(unsetenv("FMHA_HIP_PLUGIN_DIR"), 0);
    const fs::path program = fs::read_symlink("/proc/self/exe").parent_path();
    EXPECT_THAT(plugin_folders(), testing::Contains(program));
    EXPECT_THAT(plugin_folders(), testing::Contains(program.parent_path() / "lib"));
}

TEST(Devices, NoneOrAnOldDriverIsASentence) {
    FakeRuntime runtime;
    runtime.failing_call = 0;
    runtime.failure = {100, Fault::no_device};
    EXPECT_THAT(sentence_of<DeviceError>([&] { count_devices(runtime); }),
                HasSubstr("no device: HIP finds no AMD GPU"));
    FakeRuntime empty;
    empty.devices = 0;
    EXPECT_THAT(sentence_of<DeviceError>([&] { count_devices(empty); }),
                HasSubstr("no device: HIP finds no AMD GPU"));
    FakeRuntime broken;
    broken.failing_call = 0;
    broken.failure = {3, Fault::other};
    EXPECT_EQ(sentence_of<DeviceError>([&] { count_devices(broken); }),
              "counting devices failed: fakeError3 (3)");
}

/// A runtime of which only the driver matters.
class OldDriver final : public FakeRuntime {
  public:
    explicit OldDriver(int driver, std::string_view platform = "nvidia")
        : driver_(driver), platform_(platform) {
        failing_call = 0;
        failure = {35, Fault::old_driver};
    }
    std::string_view platform() const override { return platform_; }
    Status versions(RuntimeVersions& out) override {
        out = {13000, driver_};
        return {};
    }

  private:
    int driver_;
    std::string_view platform_;
};

TEST(Devices, AnOldDriverIsToldFromNone) {
    OldDriver old(12040), none(0);
    EXPECT_EQ(sentence_of<DeviceError>([&] { count_devices(old); }),
              "driver too old: it supports CUDA 12.4, this plugin was built with CUDA 13.0");
    EXPECT_EQ(sentence_of<DeviceError>([&] { count_devices(none); }), "no device: there is no NVIDIA driver");
    OldDriver amd(60000000, "amd");
    EXPECT_EQ(sentence_of<DeviceError>([&] { count_devices(amd); }),
              "driver too old: amdgpu is older than the ROCm that this plugin was built with");
}

} // namespace
} // namespace fmha::loader::test
