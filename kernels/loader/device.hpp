#pragma once

#include "dispatcher/types/error.hpp"
#include "kernels/loader/device_runtime.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

/// Owners of everything that a runtime hands out. A call that fails throws DeviceError with the call, its purpose, the
/// device and the runtime's words. Destructors never throw and ignore the errors of a lost device.
namespace fmha::loader {

/// Throws DeviceError (DeviceLost, DeviceOutOfMemory) unless `status` is good. `what` names the attempt: "allocating 64 bytes on …".
void require(const DeviceRuntime& runtime, Status status, const std::string& what);

/// One device. The constructor makes it current for the calling thread. The runtime must outlive the device, and the device
/// must outlive everything that is made from it.
class Device {
  public:
    /// Throws DeviceError when there is no such device: the sentence says how many there are.
    Device(DeviceRuntime& runtime, int index);

    DeviceRuntime& runtime() const { return *runtime_; }
    int index() const { return index_; }
    const DeviceProperties& properties() const { return properties_; }
    /// "device 0 (NVIDIA H200, sm_90)"
    const std::string& text() const { return text_; }
    /// Bytes of its memory that are free now.
    std::size_t free_memory() const;

  private:
    DeviceRuntime* runtime_;
    int index_;
    DeviceProperties properties_;
    std::string text_;
};

/// A handle that is destroyed by one member of the runtime. Moved from = empty.
template <Status (DeviceRuntime::*Destroy)(void*)>
class OwnedHandle {
  public:
    OwnedHandle() = default;
    OwnedHandle(DeviceRuntime& runtime, void* handle) : runtime_(&runtime), handle_(handle) {}
    OwnedHandle(OwnedHandle&& other) noexcept
        : runtime_(other.runtime_), handle_(std::exchange(other.handle_, nullptr)) {}
    OwnedHandle& operator=(OwnedHandle&& other) noexcept {
        OwnedHandle taken(std::move(other));
        std::swap(runtime_, taken.runtime_);
        std::swap(handle_, taken.handle_);
        return *this;
    }
    OwnedHandle(const OwnedHandle&) = delete;
    OwnedHandle& operator=(const OwnedHandle&) = delete;
    ~OwnedHandle() {
        if (handle_ != nullptr) static_cast<void>((runtime_->*Destroy)(handle_));
    }

    void* get() const { return handle_; }
    DeviceRuntime& runtime() const { return *runtime_; }

  private:
    DeviceRuntime* runtime_ = nullptr;
    void* handle_ = nullptr;
};

/// Returns when everything in the stream, a handle of the runtime, is done. A failure here is that of a kernel, hence
/// DeviceLost.
void wait_for(DeviceRuntime& runtime, void* stream);

class DeviceStream {
  public:
    explicit DeviceStream(const Device& device);
    void* handle() const { return handle_.get(); }
    /// `wait_for` this stream.
    void synchronise() const;

  private:
    OwnedHandle<&DeviceRuntime::destroy_stream> handle_;
};

/// Device memory of at least one byte.
class DeviceBuffer {
  public:
    DeviceBuffer() = default;
    DeviceBuffer(const Device& device, std::size_t bytes);

    std::size_t bytes() const { return bytes_; }
    unsigned char* data() const { return static_cast<unsigned char*>(memory_.get()); }

    /// Copies between host memory and [offset, offset + bytes); in the order of the stream, and done when it has been
    /// synchronised. Throws std::out_of_range for a stretch outside of the buffer.
    void upload(const DeviceStream& stream, const void* host, std::size_t bytes, std::size_t offset = 0);
    void download(const DeviceStream& stream, void* host, std::size_t bytes, std::size_t offset = 0) const;
    void copy_from(const DeviceStream& stream, const DeviceBuffer& other, std::size_t bytes);
    void fill(const DeviceStream& stream, unsigned char value);

  private:
    void check(std::size_t offset, std::size_t bytes) const;
    OwnedHandle<&DeviceRuntime::release> memory_;
    std::size_t bytes_ = 0;
};

class Event {
  public:
    explicit Event(const Device& device);
    void record(const DeviceStream& stream) { record(stream.handle()); }
    /// `stream` is a handle of the runtime, nullptr its default stream.
    void record(void* stream);
    /// Returns when everything before the event in its stream is done. A failure is that of a kernel, hence DeviceLost.
    void synchronise() const;
    /// Seconds between two recorded events that are done.
    double seconds_since(const Event& start) const;

  private:
    OwnedHandle<&DeviceRuntime::destroy_event> handle_;
};

/// A function of a module, valid as long as the module.
class Function {
  public:
    /// Launches with `argument` as the only parameter. Throws DeviceError; errors while it runs show when the
    /// stream is synchronised. `stream` is a handle of the runtime, nullptr its default stream.
    void launch(const LaunchShape& shape, const void* argument, void* stream) const;
    const std::string& symbol() const { return symbol_; }

  private:
    friend class Module;
    Function(DeviceRuntime& runtime, void* handle, std::string symbol)
        : runtime_(&runtime), handle_(handle), symbol_(std::move(symbol)) {}
    DeviceRuntime* runtime_;
    void* handle_;
    std::string symbol_;
};

/// A code object in a device's memory.
class Module {
  public:
    /// `name` stands in messages. Throws DeviceError for an image that this device or runtime does not take.
    Module(const Device& device, const std::string& image, std::string name);
    /// `dynamic_lds`: bytes that launches may ask for. Throws DeviceError when the image lacks the symbol.
    Function function(const std::string& symbol, std::uint32_t dynamic_lds = 0) const;

  private:
    OwnedHandle<&DeviceRuntime::unload_module> handle_;
    std::string name_;
};

} // namespace fmha::loader
