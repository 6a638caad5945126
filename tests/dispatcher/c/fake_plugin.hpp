#pragma once

#include <cstdlib>
#include <dlfcn.h>
#include <stdexcept>

namespace fmha::test {

/// The functions that the plugin of fake_device.cpp has for tests, whose target defines FMHA_FAKE_PLUGIN_DIR.
class FakePlugin {
  public:
    /// Puts the plugin in the place of the real one. No call is refused, and no process has used the device.
    FakePlugin() {
        setenv("FMHA_HIP_PLUGIN_DIR", FMHA_FAKE_PLUGIN_DIR, 1);
        reinterpret_cast<void (*)()>(function("fake_device_reset"))();
    }

    /// Makes one call of the device fail, "" none.
    void refuse(const char* call) const {
        reinterpret_cast<void (*)(const char*)>(function("fake_device_refuse"))(call);
    }

  private:
    void* function(const char* name) const {
        void* const found = dlsym(library_, name);
        if (found == nullptr) throw std::runtime_error(dlerror());
        return found;
    }

    void* library_ = dlopen(FMHA_FAKE_PLUGIN_DIR "/libfmha_hip_amd.so", RTLD_NOW);
};

} // namespace fmha::test
