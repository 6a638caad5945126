#pragma once

#include "dispatcher/types/kernel_instance.hpp"
#include "harness/data/tensor_set.hpp"
#include "kernels/loader/device.hpp"

#include <vector>

namespace fmha::harness {

/// A block of host memory and where it lies on a device; the buffer is at least as large.
struct Placed {
    MemoryBlock block;
    loader::DeviceBuffer* buffer;
};

std::size_t bytes_of(const MemoryBlock& block);

/// Byte by byte, guard zones included; done when the stream has been synchronised.
void upload(const Placed& placed, const loader::DeviceStream& stream);
void download(const Placed& placed, const loader::DeviceStream& stream);

/// `host` with every pointer replaced by the device's. Throws DeviceError for a pointer into no block: one of the host
/// never reaches a device.
Invocation on_device(Invocation host, const std::vector<Placed>& placed);

} // namespace fmha::harness
