// A plugin whose device is the processor, so that everything above a device plugin runs on a machine without a GPU. Kernels are
// the host target's. FMHA_FAKE_ARCH is the device's architecture. FMHA_FAKE_FAULT is a known mistake of its kernels, or
// - "illegal_address": a launch of more than 100 keys takes the context of the process;
// - "hang": the driver never answers;
// - "death": such a launch leaves a mark in the folder FMHA_FAKE_GRAVES too, and a device with a mark cannot be selected any more.
// There are FMHA_FAKE_DEVICES devices. Number FMHA_FAKE_FAULTY has the mistake; all have it where no number is given.

#include "dispatcher/types/args_fields.hpp"
#include "kernels/targets/host/faults/fault.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "tests/loader/fake_runtime.hpp"

#include <cstdlib>
#include <fstream>
#include <unistd.h>

namespace fmha::loader::test {
namespace {

std::string setting(const char* name, const char* otherwise) {
    const char* value = std::getenv(name);
    return value == nullptr ? otherwise : value;
}

FakeRuntime& process_runtime() {
    static FakeRuntime runtime;
    runtime.device.arch = setting("FMHA_FAKE_ARCH", "gfx950");
    const std::string every_fault = setting("FMHA_FAKE_FAULT", "");
    while (every_fault == "hang") pause();
    runtime.devices = std::stoi(setting("FMHA_FAKE_DEVICES", "1"));
    const std::string graves = setting("FMHA_FAKE_GRAVES", "");
    const auto grave = [graves](int device) { return graves + "/" + std::to_string(device); };
    runtime.select = [grave](int device) {
        return access(grave(device).c_str(), F_OK) == 0 ? Status{100, Fault::no_device} : Status{};
    };
    const std::string faulty = setting("FMHA_FAKE_FAULTY", "");
    runtime.run = [every_fault, faulty, grave](const KernelConfig& config, const FwdArgs& args) {
        const bool here = faulty.empty() || faulty == std::to_string(runtime.current());
        const std::string fault = here ? every_fault : std::string();
        if (fault == "death") std::ofstream(grave(runtime.current())) << "here it lies\n";
        if (fault == "death" || (fault == "illegal_address" && args.shape.seqlen_k > 100)) {
            runtime.loss = Status{700, Fault::context_lost};
            return;
        }
        FwdArgs seen = args;
        each_pointer(seen, [&](const std::string& path, auto& pointer) {
            // A real device faults; this one says so and ends like a process that was killed.
            if (pointer != nullptr && !runtime.holds(pointer)) {
                std::fprintf(stderr, "the device got a pointer of the host: %s\n", path.c_str());
                std::abort();
            }
        });
        if (const auto known = parse_enum<host_target::Fault>(fault))
            host_target::run_fwd_with_fault(config, args, *known, {.threads = 1});
        else
            host_target::run_kernel(config, args, {.threads = 1});
    };
    return runtime;
}

} // namespace
} // namespace fmha::loader::test

extern "C" fmha::loader::DeviceRuntime* fmha_device_runtime(int abi) {
    return abi == fmha::loader::runtime_abi ? &fmha::loader::test::process_runtime() : nullptr;
}
