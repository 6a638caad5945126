#pragma once

#include "dispatcher/types/kernel_instance.hpp"
#include "kernels/loader/device.hpp"

#include <cstddef>
#include <vector>

namespace fmha::loader {

/// Times passes by pairs of events in a stream of `device`, so that launches follow one another without a pause. Waits for the
/// stream only when many passes are under way.
class EventClock final : public PassClock {
  public:
    EventClock(const Device& device, Stream stream) : device_(device), stream_(stream) {}

    void start() override;
    void stop() override;
    std::vector<double> take_seconds() override;

  private:
    struct Pass {
        Event start, stop;
    };

    void read();

    Device device_;
    Stream stream_;
    std::vector<Pass> passes_;  ///< made when first needed, then used again
    std::size_t under_way_ = 0; ///< of `passes_`
    std::vector<double> seconds_;
};

} // namespace fmha::loader
