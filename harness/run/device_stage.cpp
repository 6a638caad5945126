#include "harness/run/device_stage.hpp"

#include "harness/run/placement.hpp"

#include <cstddef>

namespace fmha::harness {
namespace {

/// Tensors with address space for offsets beyond 2^31 are too large to keep while others need the room.
constexpr std::size_t largest_kept_buffer = std::size_t{1} << 30U;

} // namespace

DeviceStage::DeviceStage(const loader::Device& device)
    : device_(device), stream_(device), start_(device), stop_(device) {}

double DeviceStage::launch(const KernelInstance& kernel, const Invocation& arguments, TensorSet& tensors) {
    try {
        const double seconds = copy_and_launch(kernel, arguments, tensors);
        std::erase_if(buffers_, [](const auto& named) { return named.second.bytes() > largest_kept_buffer; });
        return seconds;
    } catch (const DeviceLost&) {
        lost_ = true;
        throw;
    }
}

double DeviceStage::copy_and_launch(const KernelInstance& kernel, const Invocation& arguments,
                                    TensorSet& tensors) {
    std::vector<Placed> placed;
    for (MemoryBlock& block : tensors.memory()) {
        loader::DeviceBuffer& there = buffer(block.name, bytes_of(block));
        placed.push_back({std::move(block), &there});
        upload(placed.back(), stream_);
    }
    const Invocation args = on_device(arguments, placed);

    start_.record(stream_);
    kernel.launch(args, fmha::Stream{stream_.handle()});
    stop_.record(stream_);
    stream_.synchronise();
    for (const Placed& one : placed) download(one, stream_);
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
