#include "harness/run/placement.hpp"

#include "dispatcher/types/args_fields.hpp"

#include <fmt/format.h>

namespace fmha::harness {
namespace {

unsigned char* address_of(const std::vector<Placed>& placed, const void* host, const std::string& path) {
    const auto* at = static_cast<const unsigned char*>(host);
    for (const Placed& one : placed)
        if (at >= one.block.begin() && at < one.block.end())
            return one.buffer->data() + (at - one.block.begin());
    throw DeviceError(fmt::format("argument {} points to memory that is not on the device", path));
}

template <class Pointer>
Pointer rebased(const std::vector<Placed>& placed, Pointer host, const std::string& path) {
    return host == nullptr ? nullptr
                           : static_cast<Pointer>(static_cast<void*>(address_of(placed, host, path)));
}

std::size_t offset_in(const MemoryBlock& block, const std::span<unsigned char>& stretch) {
    return static_cast<std::size_t>(stretch.data() - block.begin());
}

} // namespace

std::size_t bytes_of(const MemoryBlock& block) {
    return static_cast<std::size_t>(block.end() - block.begin());
}

void upload(const Placed& placed, const loader::DeviceStream& stream) {
    for (const auto& stretch : placed.block.stretches)
        placed.buffer->upload(stream, stretch.data(), stretch.size(), offset_in(placed.block, stretch));
}

void download(const Placed& placed, const loader::DeviceStream& stream) {
    for (const auto& stretch : placed.block.stretches)
        placed.buffer->download(stream, stretch.data(), stretch.size(), offset_in(placed.block, stretch));
}

Invocation on_device(Invocation host, const std::vector<Placed>& placed) {
    std::visit(
        [&]<class Args>(Args& args) {
            if constexpr (!std::same_as<Args, std::monostate>)
                each_pointer(args, [&](const std::string& path, auto& pointer) {
                    pointer = rebased(placed, pointer, path);
                });
        },
        host);
    return host;
}

} // namespace fmha::harness
