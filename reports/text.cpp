#include "dispatcher/types/visible_text.hpp"
#include "reports/causes.hpp"
#include "reports/pictures.hpp"
#include "reports/report.hpp"

#include <fmt/format.h>

#include <cctype>
#include <map>
#include <utility>

namespace fmha::reports {
namespace {

std::string title_of(const harness::CaseResult& result) {
    return fmt::format("{} {}\n", heading(result.outcome), visible_line(result.name));
}

std::string why_of(const harness::CaseResult& result) {
    return result.message.empty() ? std::string() : fmt::format("  why      {}\n", result.message);
}

std::string facts_of(const harness::CaseResult& result) {
    std::string text = title_of(result);
    if (!result.about.empty()) text += fmt::format("  about    {}\n", visible_line(result.about));
    if (!result.kernel.empty()) text += fmt::format("  kernel   {}\n", visible_line(result.kernel));
    if (result.device) text += fmt::format("  device   {}\n", *result.device);
    text += why_of(result);
    if (!result.pattern.empty()) text += fmt::format("  pattern  {}\n", visible_line(result.pattern));
    if (result.gates.empty()) return text;
    text += "  gates   ";
    for (const auto& gate : result.gates)
        text += fmt::format(" {}{}{}={:.3g}{}", gate.gate, gate.tensor.empty() ? "" : ":", gate.tensor,
                            gate.ratio, gate.failed() ? "!" : "");
    return text + "   (measured / allowed; ! failed)\n";
}

/// The worst elements, and where the wrong ones lie.
std::string numbers_of(const harness::CaseResult& result) {
    if (result.worst.empty() || harness::is_pass(result.outcome)) return {};
    std::string text = "  worst    tensor  b  h    row column            got       expected          limit\n";
    for (const auto& d : result.worst)
        text += fmt::format("           {:<6} {:>2} {:>2} {:>6} {:>6} {:>14.7g} {:>14.7g} {:>14.3g}\n",
                            d.tensor, d.b, d.h, d.row, d.column, d.got, d.expected, d.limit);
    for (const auto& map : result.maps) text += error_map_text(map);
    return text;
}

std::string repetition_of(const harness::CaseResult& result) {
    std::string text;
    if (!result.numerics.empty()) text += fmt::format("  declared {}\n", result.numerics);
    return text + fmt::format("  repeat   {}\n", result.reproduce) + result.smaller;
}

} // namespace

std::string heading(harness::Outcome outcome) {
    std::string words = harness::words_of(outcome);
    for (char& c : words) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return words;
}

std::string failure_words(const harness::CaseResult& result) {
    return visible(facts_of(result) + repetition_of(result));
}

std::string failure_text(const harness::CaseResult& result) {
    return visible(facts_of(result) + numbers_of(result) + repetition_of(result));
}

std::string failures_text(const std::vector<harness::CaseResult>& results) {
    constexpr int whole = 3;
    std::map<std::pair<ApiFamily, std::string>, int> told;
    std::string text, brief;
    for (const auto& result : results) {
        if (harness::is_green(result.outcome)) continue;
        if (++told[{result.family, failed_by(result)}] <= whole)
            text += failure_text(result) + "\n";
        else
            brief += visible(title_of(result) + why_of(result));
    }
    if (!brief.empty()) text += brief + "\n";
    return text + causes_text(results);
}

} // namespace fmha::reports
