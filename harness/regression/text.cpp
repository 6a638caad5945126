#include "harness/regression/compare.hpp"
#include "harness/regression/side.hpp"

#include "dispatcher/types/visible_text.hpp"

#include <fmt/format.h>

#include <map>

namespace fmha::regression {
namespace {

std::string compared_text(const FamilyVerdict& family) {
    std::string text;
    for (const auto& [number, what] : {std::pair{family.cases, "cases"},
                                       {family.kernels, "kernels"},
                                       {family.margins, "margins"},
                                       {family.times, "times"},
                                       {family.resources, "compiled kernels"},
                                       {family.counts, "counts"}})
        if (number > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", number, what);
    return text.empty() ? "nothing compared" : text;
}

std::string finding_text(const Finding& finding) {
    std::string text = fmt::format(
        "  {:<12}{}\n              {} -> {}{}{}\n              in {}\n", to_string(finding.kind),
        visible_line(shown(finding.subject)), visible_line(finding.before), visible_line(finding.after),
        finding.by.empty() ? "" : "   ", visible_line(finding.by), visible_line(shown(finding.series)));
    if (!finding.accepted.empty())
        text += fmt::format("              accepted: {}\n", visible_line(finding.accepted));
    return text;
}

/// Findings of one family and kind that are shown: a family that is red as a whole must not push the others off the screen.
constexpr std::int64_t most_shown = 5;

std::string findings_text(const std::vector<Finding>& findings) {
    std::string text;
    std::map<Kind, std::int64_t> told;
    for (const Finding& finding : findings)
        if (++told[finding.kind] <= most_shown) text += finding_text(finding);
    for (const auto& [kind, number] : told)
        if (number > most_shown)
            text += fmt::format("  … and {} more {} (--junit, --html and --json have all)\n",
                                number - most_shown, to_string(kind));
    return text;
}

/// "80 not_green, 2 case_lost", when there is more than one kind.
std::string kinds_text(const Verdict& verdict) {
    std::map<Kind, std::int64_t> numbers;
    for (const FamilyVerdict& family : verdict.families)
        for (const Finding& finding : family.findings)
            if (finding.red()) ++numbers[finding.kind];
    std::string text;
    if (numbers.size() > 1)
        for (const auto& [kind, number] : numbers)
            text += fmt::format("{} {} {}", text.empty() ? ":" : ",", number, to_string(kind));
    return text;
}

} // namespace

std::string to_text(const Verdict& verdict) {
    std::string text;
    for (const FamilyVerdict& family : verdict.families) {
        const std::int64_t red = family.red_findings();
        text +=
            fmt::format("{:<16}{}   {}\n", visible_line(family.family),
                        red == 0 ? std::string("GREEN") : fmt::format("RED {}", red), compared_text(family));
        text += findings_text(family.findings);
    }
    for (const std::string& note : verdict.notes) text += fmt::format("note: {}\n", visible_line(note));
    text += fmt::format("{} against {}: ", visible_line(shown_side(verdict.after)),
                        visible_line(shown_side(verdict.before)));
    if (verdict.green()) return text + "GREEN\n";
    const std::int64_t red = verdict.red_findings();
    return text + (red > 0
                       ? fmt::format("RED, {} finding{}{}\n", red, red == 1 ? "" : "s", kinds_text(verdict))
                       : std::string("RED, nothing was compared\n"));
}

Json to_json(const Verdict& verdict) {
    auto families = Json::array();
    for (const FamilyVerdict& family : verdict.families) {
        auto findings = Json::array();
        for (const Finding& f : family.findings)
            findings.push_back({{"kind", to_string(f.kind)},
                                {"subject", f.subject},
                                {"series", f.series},
                                {"before", f.before},
                                {"after", f.after},
                                {"by", f.by},
                                {"accepted", f.accepted.empty() ? Json() : Json(f.accepted)}});
        families.push_back({{"family", family.family},
                            {"green", family.red_findings() == 0},
                            {"cases", family.cases},
                            {"kernels", family.kernels},
                            {"margins", family.margins},
                            {"times", family.times},
                            {"resources", family.resources},
                            {"counts", family.counts},
                            {"findings", std::move(findings)}});
    }
    return {{"schema", "fmha-gate-1"},  {"before", verdict.before},        {"after", verdict.after},
            {"green", verdict.green()}, {"families", std::move(families)}, {"notes", verdict.notes}};
}

} // namespace fmha::regression
