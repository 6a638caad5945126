#pragma once

#include "dispatcher/types/kernel_config.hpp"
#include "dispatcher/types/kernel_instance.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fmha::c {

enum class Direction : std::uint8_t { to_device, to_host };

/// The kernels of a build's folder on one device, as a context launches them.
class DeviceSide {
  public:
    /// Reads the folder and opens the device. `arch` is the architecture that the caller expects, empty for that of the device.
    /// Throws InputError for a folder without manifest, a device number that is none or an architecture that is not the
    /// device's, DeviceError for everything that the device or its runtime refuses.
    DeviceSide(const std::filesystem::path& folder, std::int64_t device, std::string_view arch);
    ~DeviceSide();
    DeviceSide(const DeviceSide&) = delete;
    DeviceSide& operator=(const DeviceSide&) = delete;

    const ArchName& arch() const;
    /// The folder's kernels for the device's architecture.
    const std::vector<KernelConfig>& kernels() const;
    /// Starts the kernel on `stream`; its code object is loaded at its first launch. Throws DeviceError, and
    /// UnsupportedInvocation for arguments that the kernel does not take.
    void launch(const KernelConfig& config, const Invocation& arguments, void* stream);

    /// Where entries of packed 4-bit values of V begin (T-2), for arguments in memory of the device. Only a packed batch of such
    /// a type has its offsets fetched, which waits for the stream. Throws ProblemError and DeviceError.
    void check_starts(DataType type, const Invocation& arguments, void* stream);

    /// Memory of the device, of at least one byte; the caller releases it, null included. All of these throw DeviceError.
    void* allocate(std::int64_t bytes);
    void release(void* memory);
    /// Bytes of the device's memory from `memory` on, as far as allocations follow each other without a gap, or `wanted` of them;
    /// 0 for memory that is none of the device's.
    std::int64_t room_at(const void* memory, std::int64_t wanted);
    /// "device 0 (NVIDIA H200, sm_90)"
    const std::string& text() const;
    /// Starts a copy in the order of the stream.
    void copy(void* to, const void* from, std::int64_t bytes, Direction direction, void* stream);
    /// Starts to put 0 into every byte, in the order of the stream.
    void clear(void* memory, std::int64_t bytes, void* stream);
    /// `count` numbers from memory of the device, when everything in the stream is done.
    std::vector<std::int32_t> fetch(const std::int32_t* from, std::int64_t count, void* stream);
    /// Returns when everything in the stream is done.
    void wait(void* stream);
    /// Seconds on the device between the first and the last of `repeats` passes. Returns when they are done.
    double seconds_of(int repeats, const std::function<void()>& pass, void* stream);

  private:
    void make_current();
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace fmha::c
