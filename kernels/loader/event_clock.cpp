#include "kernels/loader/event_clock.hpp"

#include <utility>

namespace fmha::loader {
namespace {

constexpr std::size_t passes_at_a_time = 64;

} // namespace

void EventClock::start() {
    if (under_way_ == passes_at_a_time) read();
    if (under_way_ == passes_.size()) passes_.push_back({Event(device_), Event(device_)});
    passes_[under_way_].start.record(stream_.handle);
}

void EventClock::stop() {
    passes_[under_way_].stop.record(stream_.handle);
    ++under_way_;
}

std::vector<double> EventClock::take_seconds() {
    read();
    return std::exchange(seconds_, {});
}

void EventClock::read() {
    wait_for(device_.runtime(), stream_.handle);
    for (std::size_t n = 0; n < under_way_; ++n)
        seconds_.push_back(passes_[n].stop.seconds_since(passes_[n].start));
    under_way_ = 0;
}

} // namespace fmha::loader
