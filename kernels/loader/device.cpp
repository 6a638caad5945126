#include "kernels/loader/device.hpp"

#include "kernels/loader/code_object.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace fmha::loader {
namespace {

void* made(const Device& device, Status (DeviceRuntime::*make)(void*&), std::string_view what) {
    void* handle = nullptr;
    require(device.runtime(), (device.runtime().*make)(handle),
            fmt::format("creating {} on {}", what, device.text()));
    return handle;
}

/// What a synchronisation reports is the fault of `work`, whatever the runtime calls it.
void require_done(const DeviceRuntime& runtime, Status status, std::string_view work) {
    if (!status.ok())
        throw DeviceLost(fmt::format("{} failed: {} ({})", work, runtime.describe(status.code), status.code));
}

} // namespace

void require(const DeviceRuntime& runtime, Status status, const std::string& what) {
    if (status.ok()) return;
    const std::string sentence =
        fmt::format("{} failed: {} ({})", what, runtime.describe(status.code), status.code);
    if (status.fault == Fault::context_lost) throw DeviceLost(sentence);
    if (status.fault == Fault::no_memory) throw DeviceOutOfMemory(sentence);
    throw DeviceError(sentence);
}

Device::Device(DeviceRuntime& runtime, int index)
    : runtime_(&runtime), index_(index), text_(fmt::format("device {}", index)) {
    int count = 0;
    require(runtime, runtime.device_count(count), "counting devices");
    if (index < 0 || index >= count)
        throw DeviceError(count == 0
                              ? fmt::format("there is no device {}, and no other", index)
                              : fmt::format("there is no device {}; allowed: 0 to {}", index, count - 1));
    require(runtime, runtime.set_device(index), fmt::format("selecting {}", text_));
    require(runtime, runtime.properties(index, properties_), fmt::format("describing {}", text_));
    text_ = fmt::format("device {} ({}, {})", index, properties_.name, properties_.arch);
}

std::size_t Device::free_memory() const {
    std::size_t free = 0, total = 0;
    require(*runtime_, runtime_->memory_info(free, total), fmt::format("asking for the memory of {}", text_));
    return free;
}

DeviceStream::DeviceStream(const Device& device)
    : handle_(device.runtime(), made(device, &DeviceRuntime::create_stream, "a stream")) {}

void wait_for(DeviceRuntime& runtime, void* stream) {
    require_done(runtime, runtime.synchronise_stream(stream), "the kernels or copies of a stream");
}

void DeviceStream::synchronise() const {
    wait_for(handle_.runtime(), handle_.get());
}

DeviceBuffer::DeviceBuffer(const Device& device, std::size_t bytes) : bytes_(bytes) {
    void* memory = nullptr;
    // A zero-sized allocation may be null, which would read as absent.
    const Status status = device.runtime().allocate(bytes == 0 ? 1 : bytes, memory);
    require(device.runtime(), status, fmt::format("allocating {} bytes on {}", bytes, device.text()));
    memory_ = {device.runtime(), memory};
}

void DeviceBuffer::check(std::size_t offset, std::size_t bytes) const {
    if (offset > bytes_ || bytes > bytes_ - offset)
        throw std::out_of_range(
            fmt::format("{} bytes at offset {} are not inside a buffer of {} bytes", bytes, offset, bytes_));
}

void DeviceBuffer::upload(const DeviceStream& stream, const void* host, std::size_t bytes,
                          std::size_t offset) {
    check(offset, bytes);
    DeviceRuntime& runtime = memory_.runtime();
    require(runtime, runtime.copy(data() + offset, host, bytes, CopyKind::to_device, stream.handle()),
            fmt::format("copying {} bytes to the device", bytes));
}

void DeviceBuffer::download(const DeviceStream& stream, void* host, std::size_t bytes,
                            std::size_t offset) const {
    check(offset, bytes);
    DeviceRuntime& runtime = memory_.runtime();
    require(runtime, runtime.copy(host, data() + offset, bytes, CopyKind::to_host, stream.handle()),
            fmt::format("copying {} bytes from the device", bytes));
}

void DeviceBuffer::copy_from(const DeviceStream& stream, const DeviceBuffer& other, std::size_t bytes) {
    check(0, bytes);
    other.check(0, bytes);
    DeviceRuntime& runtime = memory_.runtime();
    require(runtime, runtime.copy(data(), other.data(), bytes, CopyKind::on_device, stream.handle()),
            fmt::format("copying {} bytes on the device", bytes));
}

void DeviceBuffer::fill(const DeviceStream& stream, unsigned char value) {
    DeviceRuntime& runtime = memory_.runtime();
    require(runtime, runtime.fill(data(), value, bytes_, stream.handle()),
            fmt::format("filling {} bytes on the device", bytes_));
}

Event::Event(const Device& device)
    : handle_(device.runtime(), made(device, &DeviceRuntime::create_event, "an event")) {}

void Event::record(void* stream) {
    require(handle_.runtime(), handle_.runtime().record_event(handle_.get(), stream), "recording an event");
}

void Event::synchronise() const {
    require_done(handle_.runtime(), handle_.runtime().synchronise_event(handle_.get()),
                 "the kernels or copies before an event");
}

double Event::seconds_since(const Event& start) const {
    float milliseconds = 0.0F;
    require(handle_.runtime(), handle_.runtime().elapsed_ms(start.handle_.get(), handle_.get(), milliseconds),
            "asking for the time between two events");
    return static_cast<double>(milliseconds) / 1e3;
}

void Function::launch(const LaunchShape& shape, const void* argument, void* stream) const {
    require(*runtime_, runtime_->launch(handle_, shape, argument, stream),
            fmt::format("launching {} with {} blocks of {} threads and {} bytes of dynamic LDS", symbol_,
                        shape.blocks, shape.threads, shape.dynamic_lds));
}

Module::Module(const Device& device, const std::string& image, std::string name) : name_(std::move(name)) {
    check_code_object(image, device.properties().arch, name_);
    void* handle = nullptr;
    const Status status = device.runtime().load_module(image.data(), handle);
    std::string what =
        fmt::format("loading {} ({}) on {}", name_, describe_code_object(image), device.text());
    const std::string advice = code_object_advice(image);
    if ((status.fault == Fault::bad_image || status.fault == Fault::wrong_arch) && !advice.empty())
        throw DeviceError(fmt::format("{} failed: {} ({}); {}", what, device.runtime().describe(status.code),
                                      status.code, advice));
    require(device.runtime(), status, what);
    handle_ = {device.runtime(), handle};
}

Function Module::function(const std::string& symbol, std::uint32_t dynamic_lds) const {
    DeviceRuntime& runtime = handle_.runtime();
    void* handle = nullptr;
    require(runtime, runtime.function(handle_.get(), symbol.c_str(), handle),
            fmt::format("finding {} in {}", symbol, name_));
    // LDS that every launch may have without asking, on all platforms.
    constexpr std::uint32_t default_dynamic_lds = 48 * 1024;
    if (dynamic_lds > default_dynamic_lds)
        require(runtime, runtime.allow_dynamic_lds(handle, dynamic_lds),
                fmt::format("allowing {} {} bytes of dynamic LDS", symbol, dynamic_lds));
    return {runtime, handle, symbol};
}

} // namespace fmha::loader
