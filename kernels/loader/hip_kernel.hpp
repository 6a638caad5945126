#pragma once

#include "dispatcher/types/kernel_instance.hpp"
#include "kernels/built/manifest.hpp"
#include "kernels/loader/device.hpp"
#include "kernels/targets/null_tensors.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace fmha::hip_target {
struct BlockShape;
}

namespace fmha::loader {

/// A kernel of a loaded code object. Its launches take arguments that point to device memory and return at once;
/// errors while it runs show when the stream is synchronised. A launch with a null tensor waits for the stream, to read from the
/// lengths whether the tensor has elements.
class HipKernel final : public KernelInstance {
  public:
    /// Throws DeviceError when the module lacks the symbol or the device the LDS.
    HipKernel(const built::BuiltKernel& kernel, const Device& device, std::shared_ptr<const Module> module);

    const KernelConfig& config() const override { return config_; }
    std::string name() const override { return name_; }
    void launch(const Invocation& invocation, Stream stream) const override;
    std::unique_ptr<PassClock> clock(Stream stream) const override;

  private:
    HipKernel(const built::BuiltKernel& kernel, const Device& device, std::shared_ptr<const Module> module,
              const hip_target::BlockShape& plan);
    targets::Elements elements(const Shape& shape, const LengthArrays& lengths, Stream stream) const;

    KernelConfig config_;
    std::string name_;
    Device device_;
    std::shared_ptr<const Module> module_; ///< keeps the function
    std::int64_t resident_;                ///< blocks that a compute unit holds at a time
    LaunchShape shape_;                    ///< of every launch, but for the number of blocks
    Function function_;
};

} // namespace fmha::loader
