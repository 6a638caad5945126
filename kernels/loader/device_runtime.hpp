#pragma once

#include "kernels/targets/hip/tensor_map.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// The face that a GPU runtime shows to this project. One shared library per HIP platform implements it and is opened
/// when a GPU is asked for, so that programs start and run on machines that have neither.
namespace fmha::loader {

/// Grows with every change of this file. A plugin answers only to its own number.
inline constexpr int runtime_abi = 4;

/// The kind of failure that a runtime's error number stands for.
enum class Fault : std::uint8_t {
    none,
    no_device,    ///< no GPU of this platform, or no driver
    old_driver,   ///< a driver that is older than the plugin's runtime
    no_memory,    ///< of the device
    bad_image,    ///< not a code object, or one of a format that the runtime does not read
    wrong_arch,   ///< a code object for another architecture
    no_symbol,    ///< the code object does not have the function
    context_lost, ///< a kernel faulted: every further call of this process fails
    other,
};

/// Result of a call: the runtime's own error number, 0 when all went well.
struct [[nodiscard]] Status {
    int code = 0;
    Fault fault = Fault::none;
    bool ok() const { return fault == Fault::none; }
};

/// The properties of a device, known without using it.
struct DeviceProperties {
    std::string name;     ///< "NVIDIA H200"
    std::string arch;     ///< "gfx942" or "sm_90"
    std::string features; ///< the text behind the arch, "sramecc+:xnack-"; "" on NVIDIA
    std::int32_t compute_units = 0;
    std::int32_t wave_size = 0; ///< lanes
    std::int64_t lds_bytes = 0; ///< most LDS of one block, dynamic and beyond the default limit included
    std::int64_t l2_bytes = 0;
    std::int64_t memory_bytes = 0;
};

/// Versions as the runtime packs them; 0 when there is none.
struct RuntimeVersions {
    int runtime = 0, driver = 0;
};

struct LaunchShape {
    std::uint32_t blocks = 0, threads = 0; ///< one dimension each
    std::uint32_t dynamic_lds = 0;         ///< bytes
    /// The kernel itself waits until those before it in its stream have ended, so that its blocks may come earlier. Platforms
    /// that know no such launch make an ordinary one.
    bool overlaps = false;
};

enum class CopyKind : std::uint8_t { to_device, to_host, on_device };

/// Exactly the calls that are needed. Handles are opaque; nothing throws. Calls act on the calling thread's device (set_device).
class DeviceRuntime {
  public:
    virtual ~DeviceRuntime() = default;

    virtual std::string_view platform() const = 0; ///< "amd" or "nvidia"
    /// Symbolic name and text of an error number: "hipErrorOutOfMemory: out of memory".
    virtual std::string describe(int code) const = 0;
    virtual Status versions(RuntimeVersions& out) = 0;

    virtual Status device_count(int& out) = 0;
    virtual Status properties(int device, DeviceProperties& out) = 0;
    virtual Status set_device(int device) = 0;
    virtual Status memory_info(std::size_t& free, std::size_t& total) = 0;

    virtual Status allocate(std::size_t bytes, void*& out) = 0;
    virtual Status release(void* memory) = 0;
    /// The allocation of the device that `address` lies in; a fault where it lies in none.
    virtual Status range_of(const void* address, const void*& begin, std::size_t& bytes) = 0;
    virtual Status copy(void* to, const void* from, std::size_t bytes, CopyKind kind, void* stream) = 0;
    virtual Status fill(void* memory, unsigned char value, std::size_t bytes, void* stream) = 0;

    virtual Status create_stream(void*& out) = 0;
    virtual Status destroy_stream(void* stream) = 0;
    virtual Status synchronise_stream(void* stream) = 0;

    virtual Status create_event(void*& out) = 0;
    virtual Status destroy_event(void* event) = 0;
    virtual Status record_event(void* event, void* stream) = 0;
    virtual Status synchronise_event(void* event) = 0;
    virtual Status elapsed_ms(void* start, void* stop, float& out) = 0;

    virtual Status load_module(const void* image, void*& out) = 0;
    virtual Status unload_module(void* module) = 0;
    virtual Status function(void* module, const char* symbol, void*& out) = 0;
    /// Lets `function` be launched with so much dynamic LDS.
    virtual Status allow_dynamic_lds(void* function, std::uint32_t bytes) = 0;
    /// The bits of a map for this platform's copy engine; only NVIDIA has one. cannot_map must have no objection to `map`.
    virtual Status encode(const hip_target::TensorMapSpec& map, hip_target::TensorMapBits& out) = 0;
    /// `argument` is the kernel's only parameter; it is copied before the call returns.
    virtual Status launch(void* function, const LaunchShape& shape, const void* argument, void* stream) = 0;
};

/// The only symbol that a plugin exports, with C linkage: its runtime, which lives as long as the process, or nullptr
/// when `abi` is not the number that it was built with.
inline constexpr const char* runtime_entry = "fmha_device_runtime";
using RuntimeEntry = DeviceRuntime*(int abi);

} // namespace fmha::loader
