#include "harness/run/fwd_execution.hpp"

#include "harness/gates/fwd_outputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>

namespace fmha::harness {
namespace {

void fail(GateVerdict& gate, std::string detail) {
    if (!gate.passed) return;
    gate.passed = false;
    gate.ratio = std::numeric_limits<double>::infinity();
    gate.detail = std::move(detail);
}

} // namespace

FwdCase in_another_layout(const FwdCase& c) {
    FwdCase other = c;
    const auto flipped = [](Layout layout) { return layout == Layout::bhsd ? Layout::bshd : Layout::bhsd; };
    other.iperm = flipped(c.iperm);
    other.operm = flipped(c.operm);
    other.stride_padding += 32;
    return other;
}

Outputs FwdExecution::run(int repeats, std::vector<GateVerdict>& gates, double& kernel_seconds) {
    GateVerdict stray{.gate = "G5.5"}, poison{.gate = "G5.6"}, repeat{.gate = "G5.7"}, layout{.gate = "G5.8"};
    Outputs first = launch(tensors_, Poison::nan, stray, kernel_seconds);
    for (int n = 1; n < repeats; ++n) {
        const bool other_memory = n % 2 == 1;
        FwdTensors& place = other_memory && elsewhere_ != nullptr ? *elsewhere_ : tensors_;
        const Outputs again = launch(place, other_memory ? Poison::huge : Poison::nan, stray, kernel_seconds);
        const std::string difference = first.first_difference(again);
        if (difference.empty()) continue;
        // Everything may have come together: the kernel alone, what memory holds, and where the values are. Each is
        // tried without the next.
        const auto differs = [&](const Outputs& from, FwdTensors& there, Poison content) {
            return !from.first_difference(launch(there, content, stray, kernel_seconds)).empty();
        };
        if (!other_memory || differs(first, tensors_, Poison::nan))
            fail(repeat, "two identical runs differ: " + difference);
        else if (elsewhere_ == nullptr || differs(first, tensors_, Poison::huge))
            fail(poison, "the result depends on padding or on memory that was never written: " + difference);
        else
            fail(layout, fmt::format("the same values in another layout give another result{}: {}",
                                     differs(again, *elsewhere_, Poison::nan)
                                         ? ", which depends on padding or on memory that was never written"
                                         : "",
                                     difference));
    }
    gates.push_back(stray);
    if (repeats > 1) gates.push_back(poison);
    if (repeats > 2 || !repeat.passed) gates.push_back(repeat);
    if (repeats > 1 && elsewhere_ != nullptr) gates.push_back(layout);
    return first;
}

Outputs FwdExecution::launch(FwdTensors& tensors, Poison poison, GateVerdict& stray, double& kernel_seconds) {
    tensors.refill(poison);
    const std::uint64_t inputs = tensors.input_checksum();
    kernel_seconds = std::min(kernel_seconds, launch_once(tensors));
    Outputs outputs = fwd_outputs(tensors.args());
    auto wrong = tensors.stray_write();
    if (!wrong && tensors.input_checksum() != inputs) wrong = "an input was written";
    if (wrong) fail(stray, "written outside the logical outputs: " + *wrong);
    return outputs;
}

double FwdExecution::launch_once(FwdTensors& tensors) {
    if (launcher_ != nullptr) return launcher_->launch(kernel_, tensors.args(), tensors.set());
    const auto start = std::chrono::steady_clock::now();
    kernel_.launch(tensors.args(), Stream{});
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

} // namespace fmha::harness
