#include "harness/run/device_stage.hpp"

#include "dispatcher/types/fwd_args_fields.hpp"
#include "harness/data/fwd_tensors.hpp"

#include <fmt/format.h>

#include <cstddef>

namespace fmha::harness {
namespace {

/// Tensors with address space for offsets beyond 2^31 are too large to keep while others need the room.
constexpr std::size_t most_kept_bytes = std::size_t{1} << 30U;

/// Where a block of host memory lies on the device.
struct Placed {
    MemoryBlock block;
    loader::DeviceBuffer* buffer;
};

/// The device's address of what lies at `host`. Throws DeviceError for memory that belongs to no block: a pointer of the host
/// never reaches a device.
unsigned char* on_device(const std::vector<Placed>& placed, const void* host, const std::string& path) {
    const auto* at = static_cast<const unsigned char*>(host);
    for (const Placed& one : placed)
        if (at >= one.block.begin() && at < one.block.end())
            return one.buffer->data() + (at - one.block.begin());
    throw DeviceError(fmt::format("argument {} points to memory that is not on the device", path));
}

template <class Pointer>
Pointer rebased(const std::vector<Placed>& placed, Pointer host, const std::string& path) {
    return host == nullptr ? nullptr
                           : static_cast<Pointer>(static_cast<void*>(on_device(placed, host, path)));
}

std::size_t offset_in(const MemoryBlock& block, const std::span<unsigned char>& stretch) {
    return static_cast<std::size_t>(stretch.data() - block.begin());
}

} // namespace

DeviceStage::DeviceStage(const loader::Device& device)
    : device_(device), stream_(device), start_(device), stop_(device) {}

double DeviceStage::launch(const KernelInstance& kernel, FwdTensors& tensors) {
    try {
        const double seconds = copy_and_launch(kernel, tensors);
        std::erase_if(buffers_, [](const auto& named) { return named.second.bytes() > most_kept_bytes; });
        return seconds;
    } catch (const DeviceLost&) {
        lost_ = true;
        throw;
    }
}

double DeviceStage::copy_and_launch(const KernelInstance& kernel, FwdTensors& tensors) {
    std::vector<Placed> placed;
    for (MemoryBlock& block : tensors.memory()) {
        loader::DeviceBuffer& there =
            buffer(block.name, static_cast<std::size_t>(block.end() - block.begin()));
        for (const auto& stretch : block.stretches)
            there.upload(stream_, stretch.data(), stretch.size(), offset_in(block, stretch));
        placed.push_back({std::move(block), &there});
    }
    FwdArgs args = tensors.args();
    each_pointer(args,
                 [&](const std::string& path, auto& pointer) { pointer = rebased(placed, pointer, path); });

    start_.record(stream_);
    kernel.launch(args, Stream{stream_.handle()});
    stop_.record(stream_);
    stream_.synchronise();
    for (const Placed& one : placed)
        if (one.block.tensor)
            for (const auto& stretch : one.block.stretches)
                one.buffer->download(stream_, stretch.data(), stretch.size(), offset_in(one.block, stretch));
    stream_.synchronise();
    return stop_.seconds_since(start_);
}

loader::DeviceBuffer& DeviceStage::buffer(std::string_view name, std::size_t bytes) {
    auto& kept = buffers_[std::string(name)];
    if (kept.data() != nullptr && kept.bytes() >= bytes) return kept;
    kept = {};
    kept = loader::DeviceBuffer(device_, bytes);
    return kept;
}

} // namespace fmha::harness
