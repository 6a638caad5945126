#include "harness/bench/matrix_loop.hpp"
#include "harness/bench/timing.hpp"
#include "harness/run/hip_target.hpp"
#include "harness/run/placement.hpp"
#include "kernels/loader/event_clock.hpp"
#include "kernels/loader/plugin.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

namespace fmha::harness {
namespace {

class HipTimed final : public TimedKernel {
  public:
    HipTimed(const loader::Device& device, const loader::DeviceStream& stream, const TimedCase& timed)
        : TimedKernel(timed), device_(&device), stream_(&stream), clock_(device, Stream{stream.handle()}) {
        std::vector<MemoryBlock> blocks = timed.tensors.memory();
        std::size_t bytes = 0;
        for (const MemoryBlock& block : blocks) bytes += bytes_of(block);
        // A few allocations' rounding is left free, and the places that fit must do.
        const auto fit =
            static_cast<std::int64_t>(device.free_memory() / 4 * 3 / std::max<std::size_t>(bytes, 1));
        const std::int64_t wanted =
            places_beyond(device.properties().l2_bytes, static_cast<std::int64_t>(bytes));
        for (std::int64_t n = 0; n < std::max<std::int64_t>(1, std::min(wanted, fit)); ++n)
            places_.push_back(
                std::make_unique<Place>(device, stream, blocks, timed.arguments, timed.cleared));
        stream.synchronise();
    }

    std::int64_t places() const override { return static_cast<std::int64_t>(places_.size()); }

    std::vector<double> time_parts(std::size_t first, std::size_t end, std::int64_t launches) override {
        for (std::size_t n = 0; n < static_cast<std::size_t>(launches); ++n) {
            const Place& place = *places_[n % places_.size()];
            clock_.start();
            for (std::size_t part = first; part < end; ++part)
                if (const StageKernel* stage = stage_of(part))
                    stage->instance->launch(place.args, Stream{stream_->handle()});
                else
                    clear(place.cleared);
            clock_.stop();
        }
        return clock_.take_seconds();
    }

    void fetch() override {
        for (const Placed& one : places_.front()->placed) download(one, *stream_);
        stream_->synchronise();
    }

    void restore() override {
        for (const Placed& one : places_.front()->placed) upload(one, *stream_);
        stream_->synchronise();
    }

  private:
    /// The tensors of the case once more.
    struct Place {
        Place(const loader::Device& device, const loader::DeviceStream& stream,
              const std::vector<MemoryBlock>& blocks, const Invocation& host,
              std::span<unsigned char> cleared_on_host) {
            buffers.reserve(blocks.size());
            for (const MemoryBlock& block : blocks) {
                buffers.emplace_back(device, bytes_of(block));
                placed.push_back({block, &buffers.back()});
                upload(placed.back(), stream);
                if (!cleared_on_host.empty() && cleared_on_host.data() >= block.begin() &&
                    cleared_on_host.data() < block.end())
                    cleared = {buffers.back().data() + (cleared_on_host.data() - block.begin()),
                               cleared_on_host.size()};
            }
            args = on_device(host, placed);
        }
        std::vector<loader::DeviceBuffer> buffers;
        std::vector<Placed> placed;
        Invocation args;
        std::span<unsigned char> cleared;
    };

    void clear(std::span<unsigned char> memory) const {
        loader::DeviceRuntime& runtime = device_->runtime();
        loader::require(runtime, runtime.fill(memory.data(), 0, memory.size(), stream_->handle()),
                        fmt::format("clearing {} bytes on {}", memory.size(), device_->text()));
    }

    const loader::Device* device_;
    const loader::DeviceStream* stream_;
    std::vector<std::unique_ptr<Place>> places_;
    loader::EventClock clock_;
};

class HipTiming final : public TimingTarget {
  public:
    explicit HipTiming(const TargetOptions& options)
        : target_(make_hip_target(options)),
          device_(loader::open_runtime(loader::plugin_folders()), options.device.value_or(0)),
          stream_(device_) {}

    const std::shared_ptr<const Target>& target() const override { return target_; }
    std::string machine() const override { return target_->description(); }
    std::unique_ptr<TimedKernel> prepare(const TimedCase& timed) override {
        return std::make_unique<HipTimed>(device_, stream_, timed);
    }

    Ceiling matrix_ceiling(DataType type) override {
        const ElementType operand = element_types(type, fp8_flavour(device_.properties().arch)).k;
        const auto known = matrix_.find(operand);
        if (known != matrix_.end()) return known->second;
        return matrix_[operand] = time_matrix_loop(device_, operand);
    }

    Ceiling copy_ceiling() override {
        if (!copy_) copy_ = time_copy();
        return *copy_;
    }

  private:
    Ceiling time_copy() const {
        constexpr std::size_t largest = std::size_t{2} << 30U;
        const std::size_t bytes = std::min(largest, device_.free_memory() / 4);
        loader::DeviceBuffer from(device_, bytes), to(device_, bytes);
        from.fill(stream_, 1);
        loader::Event start(device_), stop(device_);
        double best = 0.0;
        for (int n = 0; n < 6; ++n) {
            start.record(stream_);
            to.copy_from(stream_, from, bytes);
            stop.record(stream_);
            stream_.synchronise();
            const double seconds = stop.seconds_since(start);
            if (n > 0 && seconds > 0.0) best = std::max(best, 2.0 * static_cast<double>(bytes) / seconds);
        }
        return {best, fmt::format("copy of {} MiB inside the device's memory", bytes >> 20U)};
    }

    std::shared_ptr<const Target> target_;
    loader::Device device_;
    loader::DeviceStream stream_;
    std::map<ElementType, Ceiling> matrix_;
    std::optional<Ceiling> copy_;
};

} // namespace

std::unique_ptr<TimingTarget> time_on_hip(const TargetOptions& options) {
    return std::make_unique<HipTiming>(options);
}

} // namespace fmha::harness
