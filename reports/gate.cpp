#include "reports/gate.hpp"

#include "dispatcher/types/markup.hpp"
#include "harness/regression/side.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <map>
#include <utility>

namespace fmha::reports {

using regression::FamilyVerdict;
using regression::Finding;
using regression::Verdict;

std::string junit(const Verdict& verdict, const FamilyVerdict& family) {
    std::string cases;
    std::int64_t tests = 0;
    for (const auto& [sort, compared] : {std::pair{"cases", family.cases},
                                         {"kernels", family.kernels},
                                         {"margins", family.margins},
                                         {"times", family.times},
                                         {"compiled kernels", family.resources},
                                         {"counts", family.counts}}) {
        if (compared == 0) continue;
        ++tests;
        cases += fmt::format("  <testcase classname=\"gate.{}\" name=\"{} {} compared\" time=\"0\"/>\n",
                             escaped(family.family), compared, sort);
    }
    for (const Finding& finding : family.findings) {
        ++tests;
        const std::string change =
            fmt::format("{} -> {}{}{}, in {}", finding.before, finding.after, finding.by.empty() ? "" : ", ",
                        finding.by, regression::shown(finding.series));
        const std::string inside = finding.red() ? fmt::format("<failure type=\"{}\" message=\"{}\"/>",
                                                               to_string(finding.kind), escaped(change))
                                                 : fmt::format("<system-out>{}; accepted: {}</system-out>",
                                                               escaped(change), escaped(finding.accepted));
        cases += fmt::format("  <testcase classname=\"gate.{}.{}\" name=\"{}\" time=\"0\">{}</testcase>\n",
                             escaped(family.family), to_string(finding.kind),
                             escaped(regression::shown(finding.subject)), inside);
    }
    return fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"fmha gate\">\n"
                       " <testsuite name=\"{} against {}: {}\" tests=\"{}\" failures=\"{}\" errors=\"0\" "
                       "skipped=\"0\">\n{} </testsuite>\n</testsuites>\n",
                       escaped(regression::shown_side(verdict.after)),
                       escaped(regression::shown_side(verdict.before)), escaped(family.family), tests,
                       family.red_findings(), cases);
}

std::string junit(const Verdict& verdict) {
    const bool nothing = verdict.compared() == 0;
    return fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"fmha gate\">\n"
        " <testsuite name=\"{} against {}\" tests=\"1\" failures=\"{}\" errors=\"0\" skipped=\"0\">\n"
        "  <testcase classname=\"gate\" name=\"something was compared\" time=\"0\">{}</testcase>\n"
        " </testsuite>\n</testsuites>\n",
        escaped(regression::shown_side(verdict.after)), escaped(regression::shown_side(verdict.before)),
        nothing ? 1 : 0, nothing ? "<failure type=\"gate\" message=\"nothing was compared\"/>" : "");
}

namespace {

/// Findings of one family and kind that stand in sight: a family that is red as a whole must not hide the others.
constexpr std::size_t most_shown = 20;

std::string row_of(const FamilyVerdict& family, const Finding& finding) {
    return fmt::format("<tr><td>{}</td><td class=\"{}\">{}</td><td class=\"name\" title=\"{}\">{}</td><td "
                       "class=\"said\">{}</td><td class=\"said\">{}</td>"
                       "<td>{}{}</td></tr>\n",
                       escaped(family.family), finding.red() ? "failed" : "passed", to_string(finding.kind),
                       escaped(regression::shown(finding.series)),
                       escaped(regression::shown(finding.subject)), escaped(finding.before),
                       escaped(finding.after), escaped(finding.by),
                       finding.red() ? "" : " accepted: " + escaped(finding.accepted));
}

std::string table_of(const std::string& rows) {
    return "<div class=\"scroll\"><table><thead><tr><th>family</th><th>what</th><th>case or kernel</th>"
           "<th>before</th><th>after</th><th>by</th></tr></thead><tbody>\n" +
           rows + "</tbody></table></div>\n";
}

} // namespace

std::string section(const Verdict& verdict) {
    std::string rows, others, notes;
    for (const FamilyVerdict& family : verdict.families) {
        std::map<regression::Kind, std::size_t> told;
        for (const Finding& finding : family.findings)
            (++told[finding.kind] <= most_shown ? rows : others) += row_of(family, finding);
    }
    std::string compared;
    for (const FamilyVerdict& family : verdict.families)
        compared += fmt::format(
            "<tr><th>{}</th><td class=\"{}\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>"
            "<td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>"
            "</tr>\n",
            escaped(family.family), family.red_findings() == 0 ? "passed" : "failed",
            family.red_findings() == 0 ? "green" : "red", family.cases, family.kernels, family.margins,
            family.times, family.resources, family.counts);
    for (const std::string& note : verdict.notes) notes += fmt::format("<li>{}</li>\n", escaped(note));
    return fmt::format(
        "<section class=\"gate\">\n<h2>{} against {}: <span class=\"{}\">{}</span></h2>\n"
        "<div class=\"scroll\"><table><thead><tr><th>family</th><th></th><th>cases</th><th>kernels</th>"
        "<th>margins</th><th>times</th><th>compiled</th><th>counts</th></tr></thead><tbody>\n{}</tbody></"
        "table></div>\n"
        "{}{}</section>\n",
        escaped(regression::shown_side(verdict.after)), escaped(regression::shown_side(verdict.before)),
        verdict.green() ? "passed" : "failed", verdict.green() ? "green" : "red", compared,
        rows.empty()
            ? fmt::format("<p>Nothing {}.</p>\n", verdict.compared() > 0 ? "got worse" : "was compared")
            : table_of(rows) + (others.empty() ? ""
                                               : "<details><summary>All others of these families and "
                                                 "kinds</summary>\n" +
                                                     table_of(others) + "</details>\n"),
        notes.empty() ? std::string() : fmt::format("<ul>\n{}</ul>\n", notes));
}

} // namespace fmha::reports
