#include "harness/bench/timing.hpp"

#include "dispatcher/types/error.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace fmha::harness {

Spread spread_of(std::vector<double> seconds) {
    if (seconds.empty()) return {};
    std::sort(seconds.begin(), seconds.end());
    const auto at = [&](double share) {
        const double place = share * static_cast<double>(seconds.size() - 1);
        const auto below = static_cast<std::size_t>(place);
        const std::size_t above = std::min(below + 1, seconds.size() - 1);
        return seconds[below] + (place - static_cast<double>(below)) * (seconds[above] - seconds[below]);
    };
    return {at(0.5), at(0.25), at(0.75), static_cast<std::int64_t>(seconds.size()), seconds.front()};
}

TimedKernel::TimedKernel(const TimedCase& timed)
    : stages_(timed.stages), clearings_(timed.cleared.empty() ? 0 : 1) {
    if (clearings_ > 0) parts_.emplace_back("clearing of memory");
    for (const StageKernel& stage : stages_)
        parts_.emplace_back(to_string(stage.instance->config().signature.family));
}

std::int64_t places_beyond(std::int64_t cache_bytes, std::int64_t bytes) {
    const std::int64_t one = std::max<std::int64_t>(bytes, 1);
    return std::clamp<std::int64_t>((2 * cache_bytes + one - 1) / one, 2, 1024);
}

std::unique_ptr<TimingTarget> make_timing_target(const std::string& name, const TargetOptions& options) {
    if (name == "host") return time_on_host(options);
    if (name == "hip") return time_on_hip(options);
    throw InputError(fmt::format("kernels of target {} cannot be timed", name));
}

} // namespace fmha::harness
