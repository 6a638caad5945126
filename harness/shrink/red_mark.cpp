#include "harness/shrink/red_mark.hpp"

#include "harness/results/first_line.hpp"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>

namespace fmha::harness {
namespace {

/// The first line of a message with "#" for each number: what is said of every problem with the same defect.
std::string without_numbers(const std::string& message) {
    std::string line;
    bool in_number = false;
    for (const char c : first_line(message)) {
        const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
        if (digit && !in_number) line += '#';
        in_number = digit || (in_number && c == '.');
        if (!in_number) line += c;
    }
    return line;
}

/// A sentence without its part about one problem only, which begins with the first number or a colon.
std::string beginning_of_text(const std::string& message) {
    return message.substr(0, message.find_first_of(":\n0123456789"));
}

std::string gate_text(const std::string& gate, const std::string& tensor) {
    return tensor.empty() ? gate : gate + " " + tensor;
}

constexpr std::size_t most_words = 140;

std::string short_line(const std::string& message) {
    std::string line = first_line(message);
    if (line.size() > most_words) line = line.substr(0, most_words - 1) + "…";
    return line;
}

/// What a red case without a failed gate is shown by.
std::string shown_of(const CaseResult& red) {
    if (red.outcome == Outcome::refused_unexpectedly) return refusal_reason(red);
    return red.outcome == Outcome::crashed ? short_line(red.message) : beginning_of_text(red.message);
}

/// What it is compared by. One rule, and one launch, refuse for several reasons.
std::string sign_of(const CaseResult& red) {
    if (red.outcome == Outcome::crashed || red.refused_by == RefusedBy::launch)
        return without_numbers(red.message);
    if (red.refused_by == RefusedBy::problem) return red.refusal + " " + without_numbers(red.message);
    return shown_of(red);
}

} // namespace

RedMark::RedMark(const CaseResult& red) : outcome_(red.outcome) {
    if (const GateVerdict* gate = red.first_failure()) {
        gate_ = gate->gate;
        tensor_ = gate->tensor;
        text_ = gate_text(gate_, tensor_);
        return;
    }
    sign_ = sign_of(red);
    text_ = std::string(to_string(outcome_));
    std::ranges::replace(text_, '_', ' ');
    if (const std::string shown = shown_of(red); !shown.empty()) text_ += ": " + shown;
}

bool RedMark::is_on(const CaseResult& result) const {
    if (is_green(result.outcome)) return false;
    if (gate_.empty())
        return result.outcome == outcome_ && result.first_failure() == nullptr && sign_of(result) == sign_;
    return std::ranges::any_of(result.gates, [&](const GateVerdict& gate) {
        return gate.failed() && gate.gate == gate_ && gate.tensor == tensor_;
    });
}

std::string refusal_reason(const CaseResult& refused) {
    if (refused.refused_by != RefusedBy::kernels) return refused.refusal;
    return refused.refusal.empty() ? "no kernel" : "no kernel: " + refused.refusal;
}

bool RedMark::is_like(const RedMark& other) const {
    return outcome_ == other.outcome_ && gate_ == other.gate_ && tensor_ == other.tensor_ &&
           sign_ == other.sign_;
}

const CaseResult* find_marked(std::span<const CaseResult> results, const RedMark& mark) {
    const auto found =
        std::ranges::find_if(results, [&](const CaseResult& result) { return mark.is_on(result); });
    return found == results.end() ? nullptr : &*found;
}

std::string ending(const CaseResult& result) {
    switch (result.outcome) {
    case Outcome::passed:
    case Outcome::refused_as_predicted:
    case Outcome::passed_unexpectedly:
        return "green";
    case Outcome::refused_unexpectedly:
        return result.refused_by == RefusedBy::kernels ? refusal_reason(result)
                                                       : "refused: " + short_line(result.message);
    case Outcome::type_absent:
    case Outcome::not_run:
        return "not run: " + short_line(result.message);
    case Outcome::failed:
    case Outcome::failed_as_known:
    case Outcome::mistrusted:
    case Outcome::crashed:
    case Outcome::timed_out:
        break;
    }
    return "red by " + RedMark(result).text();
}

} // namespace fmha::harness
