#include "harness/shrink/red_mark.hpp"

#include "harness/results/first_line.hpp"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>

namespace fmha::harness {
namespace {

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

std::string beginning_of(const CaseResult& red) {
    return red.outcome == Outcome::refused_unexpectedly ? refusal_reason(red)
                                                        : beginning_of_text(red.message);
}

} // namespace

RedMark::RedMark(const CaseResult& red) : outcome_(red.outcome) {
    if (const GateVerdict* gate = red.first_failure()) {
        gate_ = gate->gate;
        tensor_ = gate->tensor;
        text_ = gate_text(gate_, tensor_);
        return;
    }
    beginning_ = beginning_of(red);
    text_ = std::string(to_string(outcome_));
    std::ranges::replace(text_, '_', ' ');
    if (!beginning_.empty()) text_ += ": " + beginning_;
}

bool RedMark::is_on(const CaseResult& result) const {
    if (is_green(result.outcome)) return false;
    if (gate_.empty())
        return result.outcome == outcome_ && result.first_failure() == nullptr &&
               beginning_of(result) == beginning_;
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

const CaseResult* find_marked(std::span<const CaseResult> results, const RedMark& mark) {
    const auto found =
        std::ranges::find_if(results, [&](const CaseResult& result) { return mark.is_on(result); });
    return found == results.end() ? nullptr : &*found;
}

std::string ending(const CaseResult& result) {
    switch (result.outcome) {
    case Outcome::passed:
    case Outcome::refused_as_predicted:
        return "green";
    case Outcome::refused_unexpectedly:
        return result.message.starts_with("no complete plan") ? refusal_reason(result)
                                                              : "refused: " + short_line(result.message);
    case Outcome::type_absent:
    case Outcome::not_run:
        return "not run: " + short_line(result.message);
    case Outcome::failed:
    case Outcome::mistrusted:
    case Outcome::crashed:
    case Outcome::timed_out:
        break;
    }
    return "red by " + RedMark(result).text();
}

} // namespace fmha::harness
