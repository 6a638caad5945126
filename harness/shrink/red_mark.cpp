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
    const auto end = std::ranges::find_if(message, [](char c) { return c == ':' || c == '\n'; });
    std::string beginning(message.begin(), end);
    const auto digit = std::ranges::find_if(beginning, [](unsigned char c) { return std::isdigit(c) != 0; });
    // The sentence begins with a rule's id, as in "H-1".
    if (end != message.end() && beginning.find(' ') == std::string::npos) return beginning;
    beginning.erase(digit, beginning.end());
    return beginning;
}

/// The subject of an explanation's first sentence about the nearest kernel.
std::string nearest_lack(const std::string& explanation) {
    constexpr std::string_view title = "closest first:\n";
    const auto list = explanation.find(title);
    if (list == std::string::npos) return {};
    // The kernel's name stands between.
    const auto begin = explanation.find_first_not_of(' ', explanation.find('\n', list + title.size()) + 1);
    const auto sentence = explanation.substr(begin, explanation.find('\n', begin) - begin);
    const auto subject = std::min(sentence.find(" is "), sentence.find_first_of(",(0123456789"));
    return sentence.substr(
        0, sentence.find_last_not_of(' ', subject == std::string::npos ? subject : subject - 1) + 1);
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
    switch (red.outcome) {
    case Outcome::refused_unexpectedly:
        return refusal_reason(red);
    case Outcome::crashed:
        return short_line(red.message);
    default:
        return beginning_of_text(red.message);
    }
}

/// What it is compared by. One rule, and one launch, refuses for several reasons.
std::string sign_of(const CaseResult& red) {
    if (red.outcome == Outcome::crashed || red.message.starts_with(launch_refused))
        return without_numbers(red.message);
    if (red.outcome == Outcome::refused_unexpectedly && !red.message.starts_with("no complete plan"))
        return refusal_reason(red) + " " + without_numbers(red.message);
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
    const std::string& message = refused.message;
    if (!message.starts_with("no complete plan")) return message.substr(0, message.find_first_of(":\n"));
    const std::string lack = nearest_lack(message);
    return lack.empty() ? "no kernel" : "no kernel: " + lack;
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
        return result.message.starts_with("no complete plan") ? refusal_reason(result)
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
