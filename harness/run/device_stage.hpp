#pragma once

#include "harness/run/kernel_source.hpp"
#include "kernels/loader/device.hpp"

#include <map>
#include <string>
#include <string_view>

namespace fmha::harness {

/// Runs kernels of a device on tensors in host memory: everything that belongs to them goes to the device byte by byte, guard
/// zones, poison and padding included, the kernel runs there, and all of it comes back. So the gates see a kernel's stray
/// writes as they see the host's. Allocations are kept between launches; each is as large as its tensor was at most.
class DeviceStage final : public Launcher {
  public:
    explicit DeviceStage(const loader::Device& device);

    double launch(const KernelInstance& kernel, const Invocation& arguments, TensorSet& tensors) override;

    /// True once a kernel took the device's context with it.
    bool lost() const { return lost_; }

  private:
    double copy_and_launch(const KernelInstance& kernel, const Invocation& arguments, TensorSet& tensors);
    loader::DeviceBuffer& buffer(std::string_view name, std::size_t bytes);

    loader::Device device_;
    loader::DeviceStream stream_;
    loader::Event start_, stop_;
    std::map<std::string, loader::DeviceBuffer, std::less<>> buffers_; ///< by the name of their content
    bool lost_ = false;
};

} // namespace fmha::harness
