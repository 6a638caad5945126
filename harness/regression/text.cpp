#include "harness/regression/compare.hpp"

#include <fmt/format.h>

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
    std::string text =
        fmt::format("  {:<12}{}\n              {} -> {}{}{}\n              in {}\n", to_string(finding.kind),
                    shown(finding.subject), finding.before, finding.after, finding.by.empty() ? "" : "   ",
                    finding.by, shown(finding.series));
    if (!finding.accepted.empty()) text += fmt::format("              accepted: {}\n", finding.accepted);
    return text;
}

} // namespace

std::string to_text(const Verdict& verdict) {
    std::string text;
    for (const FamilyVerdict& family : verdict.families) {
        const std::int64_t red = family.red_findings();
        text +=
            fmt::format("{:<16}{}   {}\n", family.family,
                        red == 0 ? std::string("GREEN") : fmt::format("RED {}", red), compared_text(family));
        for (const Finding& finding : family.findings) text += finding_text(finding);
    }
    for (const std::string& note : verdict.notes) text += fmt::format("note: {}\n", note);
    text += fmt::format("{} against {}: ", verdict.after.empty() ? "nothing" : verdict.after,
                        verdict.before.empty() ? "nothing" : verdict.before);
    if (verdict.green()) return text + "GREEN\n";
    const std::int64_t red = verdict.red_findings();
    return text + (red > 0 ? fmt::format("RED, {} finding{}\n", red, red == 1 ? "" : "s")
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
