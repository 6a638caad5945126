// open_plugin FILE: opens a device plugin and prints the devices that it sees, for a test on machines with and without a device. Exit code 0:
// a device, 3: none, in one sentence; anything else is a crash. open_plugin FILE NUMBER: prints what the plugin calls that error.

#include "dispatcher/types/error.hpp"
#include "kernels/loader/device.hpp"
#include "kernels/loader/plugin.hpp"

#include <cstdio>
#include <cstdlib>

int main(int count, char** arguments) {
    try {
        auto& runtime = fmha::loader::open_plugin(arguments[1]);
        if (count > 2) {
            std::puts(runtime.describe(std::atoi(arguments[2])).c_str());
            return 0;
        }
        fmha::loader::count_devices(runtime);
        std::puts(fmha::loader::Device(runtime, 0).text().c_str());
        return 0;
    } catch (const fmha::DeviceError& error) {
        std::puts(error.what());
        return 3;
    }
}
