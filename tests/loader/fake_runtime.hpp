#pragma once

#include "dispatcher/types/args.hpp"
#include "dispatcher/types/kernel_config.hpp"
#include "kernels/loader/device_runtime.hpp"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace fmha::loader::test {

/// A runtime whose device is the processor: its memory is the heap's, its kernels are what `run` does, its code objects are
/// tables of symbols (fake_image). It counts what is alive, and fails where it is told to.
class FakeRuntime : public DeviceRuntime {
  public:
    /// What a launch does, with pointers to the fake's memory.
    std::function<void(const KernelConfig&, const FwdArgs&)> run = [](const KernelConfig&, const FwdArgs&) {};
    DeviceProperties device{"Fake GPU", "gfx950", "xnack-", 4, 64, 163840, 1 << 22, std::int64_t{1} << 34};
    int devices = 1;
    /// The call that fails, counted from 0, and how. Destroying is not counted and never fails that way.
    std::optional<int> failing_call;
    Status failure{2, Fault::no_memory};
    /// When set, the next synchronisation of a stream fails like this, and then everything does, destroying included.
    std::optional<Status> loss;
    /// What selecting a device gives.
    std::function<Status(int)> select = [](int) { return Status{}; };

    int calls() const { return calls_; }
    /// The device that was selected last.
    int current() const { return current_; }
    int loads() const { return loads_; }
    /// Allocations, streams, events and modules that nobody has given back.
    std::size_t alive() const { return memory_.size() + handles_.size(); }
    const LaunchShape& last_shape() const { return last_shape_; }
    /// The maps of the last launch of a kernel that takes some, as they were before they were encoded.
    const std::vector<hip_target::TensorMapSpec>& last_maps() const { return last_maps_; }
    /// Largest LDS that was allowed to a function.
    std::uint32_t allowed_lds() const { return allowed_lds_; }
    /// Whether `address` lies in an allocation.
    bool holds(const void* address) const;

    std::string_view platform() const override { return "amd"; }
    std::string describe(int code) const override { return "fakeError" + std::to_string(code); }
    Status versions(RuntimeVersions& out) override;
    Status device_count(int& out) override;
    Status properties(int index, DeviceProperties& out) override;
    Status set_device(int index) override;
    Status memory_info(std::size_t& free, std::size_t& total) override;
    Status allocate(std::size_t bytes, void*& out) override;
    Status release(void* memory) override;
    Status range_of(const void* address, const void*& begin, std::size_t& bytes) override;
    Status copy(void* to, const void* from, std::size_t bytes, CopyKind kind, void* stream) override;
    Status fill(void* memory, unsigned char value, std::size_t bytes, void* stream) override;
    Status create_stream(void*& out) override { return create(out); }
    Status destroy_stream(void* stream) override { return destroy(stream); }
    Status synchronise_stream(void* stream) override;
    Status create_event(void*& out) override { return create(out); }
    Status destroy_event(void* event) override { return destroy(event); }
    Status record_event(void* event, void* stream) override;
    Status synchronise_event(void* event) override;
    Status elapsed_ms(void* start, void* stop, float& out) override;
    Status load_module(const void* image, void*& out) override;
    Status unload_module(void* module) override { return destroy(module); }
    Status function(void* module, const char* symbol, void*& out) override;
    Status allow_dynamic_lds(void* function, std::uint32_t bytes) override;
    Status encode(const hip_target::TensorMapSpec& map, hip_target::TensorMapBits& out) override;
    Status launch(void* function, const LaunchShape& shape, const void* argument, void* stream) override;

  private:
    Status next();
    const std::vector<unsigned char>* allocation_of(const void* address) const;
    Status create(void*& out);
    Status destroy(void* handle);

    int calls_ = 0, loads_ = 0, current_ = 0;
    bool lost_ = false;
    std::uint32_t allowed_lds_ = 0;
    LaunchShape last_shape_;
    std::vector<hip_target::TensorMapSpec> maps_, last_maps_; ///< a map's bits are its number, from 1 on
    std::map<const unsigned char*, std::vector<unsigned char>> memory_;
    /// Handles are addresses of one byte each; a module's has its table.
    std::map<void*, std::vector<unsigned char>> handles_;
    std::map<void*, std::string> modules_;
    std::set<KernelConfig> functions_;
};

/// A code object for `arch` that FakeRuntime and the loader read: an ELF header and one line a kernel, "symbol identifier".
std::string fake_image(const std::string& arch, const std::map<std::string, KernelConfig>& kernels,
                       int code_object_version = 6);

} // namespace fmha::loader::test
