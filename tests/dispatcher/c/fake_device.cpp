// A device plugin whose device is the processor: memory is the process's own, and a launch runs the program of its
// symbol's family, forward or a stage of backward, on the host with the features that the arguments ask for.
// `fake_device_refuse(call)` makes one call fail until it is called again. `fake_device_reset()` begins a test: nothing is refused and no
// process has used the device.

#include "kernels/loader/device_runtime.hpp"
#include "kernels/targets/host/host_target.hpp"

#include <array>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <unistd.h>

namespace {

using namespace fmha;
using namespace fmha::loader;

/// The padded kernel of backward's stage `family` that takes `args`; its key tile is that of gfx942's fp32 kernels, which the splits of
/// a workspace are for.
KernelConfig fitting(KernelFamily family, const BwdArgs& args) {
    KernelConfig config;
    config.arch = "gfx942";
    Signature& s = config.signature;
    s.family = family;
    s.data_type = args.q.type == ElementType::bf16 ? DataType::bf16 : DataType::fp32;
    s.mode = args.shape.mode;
    s.mask = args.mask.type == MaskType::no_mask ? MaskClass::none : MaskClass::generic;
    s.is_deterministic = args.deterministic;
    s.hdim_q = args.shape.hdim_q;
    s.hdim_v = args.shape.hdim_v;
    config.algorithm.tile = {.m0 = 16, .n0 = 128, .k0 = 8, .n1 = 8, .k1 = 8, .k0max = 8};
    config.algorithm.pad = {.s = true, .sk = true, .d = 1, .dv = 1};
    return config;
}

/// A padded kernel that takes `args`.
KernelConfig fitting(const FwdArgs& args) {
    KernelConfig config;
    config.arch = "gfx942";
    Signature& s = config.signature;
    s.data_type = args.q.type == ElementType::bf16 ? DataType::bf16 : DataType::fp32;
    s.mask = args.mask.type == MaskType::no_mask ? MaskClass::none : MaskClass::generic;
    s.mode = args.shape.mode;
    s.has_lse = args.lse.present();
    s.hdim_q = args.shape.hdim_q;
    s.hdim_v = args.shape.hdim_v;
    config.algorithm.tile = {.m0 = 16,
                             .n0 = 16,
                             .k0 = 8,
                             .n1 = static_cast<std::int16_t>(args.shape.hdim_v),
                             .k1 = 8,
                             .k0max = static_cast<std::int16_t>(args.shape.hdim_q)};
    config.algorithm.pad = {.s = true, .sk = true, .d = 1, .dv = 1};
    return config;
}

class FakeDevice final : public DeviceRuntime {
  public:
    std::string refused; ///< the call that fails

    std::string_view platform() const override { return "amd"; }
    std::string describe(int) const override { return "fakeError: refused by the test"; }
    Status versions(RuntimeVersions& out) override { return out = {60300000, 60300000}, answer("versions"); }

    Status device_count(int& out) override { return out = 1, answer("device_count"); }
    Status properties(int, DeviceProperties& out) override {
        out = {.name = "Fake",
               .arch = "gfx942",
               .features = "",
               .compute_units = 304,
               .wave_size = 64,
               .lds_bytes = 65536,
               .l2_bytes = 1 << 20,
               .memory_bytes = 1 << 30};
        return answer("properties");
    }
    Status set_device(int) override { return answer("set_device"); }
    Status memory_info(std::size_t& free, std::size_t& total) override {
        return free = total = std::size_t{1} << 30, answer("memory_info");
    }

    Status allocate(std::size_t bytes, void*& out) override {
        out = std::malloc(bytes);
        allocated_[static_cast<const char*>(out)] = bytes;
        return answer("allocate");
    }
    Status release(void* memory) override {
        allocated_.erase(static_cast<const char*>(memory));
        return std::free(memory), answer("release");
    }
    Status range_of(const void* address, const void*& begin, std::size_t& bytes) override {
        const Status status = answer("range_of");
        const auto behind = allocated_.upper_bound(static_cast<const char*>(address));
        if (!status.ok() || behind == allocated_.begin()) return {1, Fault::other};
        const auto& [first, size] = *std::prev(behind);
        begin = first;
        bytes = size;
        return static_cast<const char*>(address) < first + size ? status : Status{1, Fault::other};
    }
    Status copy(void* to, const void* from, std::size_t bytes, CopyKind, void*) override {
        return std::memmove(to, from, bytes), answer("copy");
    }
    Status fill(void* memory, unsigned char value, std::size_t bytes, void*) override {
        return std::memset(memory, value, bytes), answer("fill");
    }

    Status create_stream(void*& out) override { return out = this, answer("create_stream"); }
    Status destroy_stream(void*) override { return answer("destroy_stream"); }
    Status synchronise_stream(void*) override { return answer("synchronise_stream"); }

    Status create_event(void*& out) override { return out = this, answer("create_event"); }
    Status destroy_event(void*) override { return answer("destroy_event"); }
    Status record_event(void*, void*) override { return answer("record_event"); }
    Status synchronise_event(void*) override { return answer("synchronise_event"); }
    Status elapsed_ms(void*, void*, float& out) override { return out = 1.0F, answer("elapsed_ms"); }

    Status load_module(const void*, void*& out) override { return out = this, answer("load_module"); }
    Status unload_module(void*) override { return answer("unload_module"); }
    /// A function is the family whose name its symbol has.
    Status function(void*, const char* symbol, void*& out) override {
        static std::array backward{KernelFamily::bwd_dot_do_o, KernelFamily::bwd_dq_dk_dv,
                                   KernelFamily::bwd_convert_dq};
        static KernelFamily forward = KernelFamily::fwd;
        out = &forward;
        for (KernelFamily& family : backward)
            if (std::string_view(symbol).find(to_string(family)) != std::string_view::npos) out = &family;
        return answer("function");
    }
    Status allow_dynamic_lds(void*, std::uint32_t) override { return answer("allow_dynamic_lds"); }
    Status encode(const hip_target::TensorMapSpec&, hip_target::TensorMapBits& out) override {
        return out = {}, answer("encode");
    }
    Status launch(void* function, const LaunchShape&, const void* argument, void*) override {
        const Status status = answer("launch");
        if (!status.ok()) return status;
        const KernelFamily family = *static_cast<const KernelFamily*>(function);
        if (family != KernelFamily::fwd) {
            const auto& args = *static_cast<const BwdArgs*>(argument);
            host_target::make_instance(fitting(family, args))->launch(args, {});
            return status;
        }
        const auto& args = *static_cast<const FwdArgs*>(argument);
        host_target::make_instance(fitting(args))->launch(args, {});
        return status;
    }

    void reset() {
        refused.clear();
        user_ = 0;
    }

  private:
    /// As drivers do, a device that was used before a fork fails in the child.
    Status answer(const char* call) {
        if (user_ == 0) user_ = getpid();
        return refused == call || user_ != getpid() ? Status{1, Fault::other} : Status{};
    }

    pid_t user_ = 0;
    std::map<const char*, std::size_t> allocated_;
};

FakeDevice& fake() {
    static FakeDevice device;
    return device;
}

} // namespace

extern "C" {

__attribute__((visibility("default"))) DeviceRuntime* fmha_device_runtime(int abi) {
    return abi == runtime_abi ? &fake() : nullptr;
}

__attribute__((visibility("default"))) void fake_device_refuse(const char* call) {
    fake().refused = call;
}

__attribute__((visibility("default"))) void fake_device_reset() {
    fake().reset();
}
}
