#include "dispatcher/types/visible_text.hpp"
#include "reports/pictures.hpp"
#include "reports/report.hpp"

#include <fmt/format.h>

namespace fmha::reports {
namespace {

std::string facts_of(const harness::CaseResult& result) {
    std::string outcome(to_string(result.outcome));
    for (char& c : outcome)
        c = c == '_' ? ' ' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    std::string text = fmt::format("{} {}\n", outcome, result.name);
    if (!result.about.empty()) text += fmt::format("  about    {}\n", result.about);
    if (!result.kernel.empty()) text += fmt::format("  kernel   {}\n", result.kernel);
    if (result.device) text += fmt::format("  device   {}\n", *result.device);
    if (!result.message.empty()) text += fmt::format("  why      {}\n", result.message);
    if (!result.pattern.empty()) text += fmt::format("  pattern  {}\n", result.pattern);
    if (result.gates.empty()) return text;
    text += "  gates   ";
    for (const auto& gate : result.gates)
        text += fmt::format(" {}{}{}={:.3g}{}", gate.gate, gate.tensor.empty() ? "" : ":", gate.tensor,
                            gate.ratio, gate.failed() ? "!" : "");
    return text + "   (measured / allowed; ! failed)\n";
}

/// The worst elements, and where the wrong ones lie.
std::string numbers_of(const harness::CaseResult& result) {
    if (result.worst.empty() || result.outcome == harness::Outcome::passed) return {};
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

std::string failure_words(const harness::CaseResult& result) {
    return visible(facts_of(result) + repetition_of(result));
}

std::string failure_text(const harness::CaseResult& result) {
    return visible(facts_of(result) + numbers_of(result) + repetition_of(result));
}

} // namespace fmha::reports
