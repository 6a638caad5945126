#include "parity/report.hpp"

#include "dispatcher/system/parallel.hpp"
#include "dispatcher/types/json.hpp"
#include "dispatcher/types/markup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

namespace fmha::parity {
namespace {

std::string renamed_sentence(const RenameGroup& group) {
    if (group.from.empty()) return fmt::format("the token \"{}\" was added", group.to);
    if (group.to.empty()) return fmt::format("the token \"{}\" was dropped", group.from);
    return fmt::format("\"{}\" became \"{}\"", group.from, group.to);
}

void add_groups(std::string& text, std::string_view what, const std::vector<NameGroup>& groups,
                std::size_t examples) {
    for (const NameGroup& group : groups) {
        text += fmt::format("  {:<8}{:>6}  {}{}\n", what, group.names.size(), group.beginning,
                            group.names.size() == 1 && group.names.front() == group.beginning ? "" : "…");
        if (!group.cause.empty()) text += fmt::format("                  because {}\n", group.cause);
        for (std::size_t i = 0; i < std::min(examples, group.names.size()); ++i)
            if (group.names[i] != group.beginning)
                text += fmt::format("                  {}\n", group.names[i]);
        if (group.names.size() > examples)
            text += fmt::format("                  … and {} more\n", group.names.size() - examples);
    }
}

std::string difference_text(const SetDifference& difference, std::size_t examples) {
    std::string text;
    add_groups(text, "lost", difference.lost, examples);
    add_groups(text, "gained", difference.gained, examples);
    for (const RenameGroup& group : difference.renamed) {
        text += fmt::format("  renamed {:>6}  {}\n", group.names.size(), renamed_sentence(group));
        for (std::size_t i = 0; i < std::min(examples, group.names.size()); ++i)
            text += fmt::format("                  {} -> {}\n", group.names[i].first, group.names[i].second);
    }
    for (const std::string& name : difference.duplicates) text += fmt::format("  twice           {}\n", name);
    return text;
}

Json groups_json(const std::vector<NameGroup>& groups) {
    auto list = Json::array();
    for (const NameGroup& group : groups)
        list.push_back({{"beginning", group.beginning}, {"cause", group.cause}, {"names", group.names}});
    return list;
}

Json difference_json(const SetDifference& difference) {
    auto renamed = Json::array();
    for (const RenameGroup& group : difference.renamed) {
        auto names = Json::array();
        for (const auto& [from, to] : group.names) names.push_back({{"from", from}, {"to", to}});
        renamed.push_back({{"from", group.from}, {"to", group.to}, {"names", std::move(names)}});
    }
    return {{"expected", difference.expected},      {"actual", difference.actual},
            {"lost", groups_json(difference.lost)}, {"gained", groups_json(difference.gained)},
            {"renamed", std::move(renamed)},        {"duplicates", difference.duplicates}};
}

std::string row_html(const Check& check, bool ok) {
    const SetDifference none;
    const SetDifference& d = check.difference ? *check.difference : none;
    return fmt::format(
        "<tr class=\"{}\"><td>{}</td><td>{} {}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
        ok ? "pass" : "fail", escaped(check.subject), check.compared, escaped(check.unit), d.lost_count(),
        d.gained_count(), d.renamed_count(), check.failures.size());
}

} // namespace

void run_checks(AuditReport& report, std::size_t count, const OnCheck& on_check,
                const std::function<Check(std::size_t)>& check) {
    report.checks.resize(count);
    std::mutex one_at_a_time;
    std::size_t done = 0;
    system::parallel_for(count, [&](std::size_t i) {
        report.checks[i] = check(i);
        if (!on_check) return;
        const std::scoped_lock lock(one_at_a_time);
        on_check(++done, count, report.checks[i].subject);
    });
}

std::int64_t AuditReport::compared() const {
    std::int64_t total = 0;
    for (const Check& check : checks) total += check.compared;
    return total;
}

bool AuditReport::ok(const Check& check) const {
    return differences_are_failures ? !check.differs() : check.failures.empty();
}

bool AuditReport::ok() const {
    return compared() > 0 && std::ranges::all_of(checks, [&](const Check& check) { return ok(check); });
}

std::string AuditReport::verdict() const {
    if (compared() == 0) return "nothing was compared, which is a failure";
    const auto red =
        std::count_if(checks.begin(), checks.end(), [](const Check& check) { return check.differs(); });
    if (red == 0) return fmt::format("as expected: {} checks", checks.size());
    return fmt::format("{} of {} checks differ{}", red, checks.size(), ok() ? ", which is no failure" : "");
}

std::string to_text(const AuditReport& report, std::size_t examples) {
    std::size_t width = 20;
    for (const Check& check : report.checks) width = std::max(width, check.subject.size());
    std::string text = report.title + "\n";
    text += fmt::format("{:<{}}  {:>10}  {:<10}{:>8}{:>8}{:>9}\n", "", width, "compared", "", "lost",
                        "gained", "renamed");
    for (const Check& check : report.checks) {
        text += fmt::format("{:<{}}  {:>10}  {:<10}", check.subject, width, check.compared, check.unit);
        if (check.difference)
            text += fmt::format("{:>8}{:>8}{:>9}", check.difference->lost_count(),
                                check.difference->gained_count(), check.difference->renamed_count());
        else
            text += fmt::format("{:>25}", "");
        text += check.differs() ? "  differs\n" : "  ok\n";
    }
    for (const Check& check : report.checks) {
        if (!check.differs() && check.notes.empty()) continue;
        text += fmt::format("\n{}\n", check.subject);
        for (const std::string& failure : check.failures) text += fmt::format("  {}\n", failure);
        if (check.difference) text += difference_text(*check.difference, examples);
        for (const std::string& note : check.notes) text += fmt::format("  note: {}\n", note);
    }
    return text + fmt::format("\n{}: {}\n", report.title, report.verdict());
}

Json to_json(const AuditReport& report) {
    auto checks = Json::array();
    for (const Check& check : report.checks) {
        Json entry = {{"subject", check.subject},   {"ok", report.ok(check)}, {"differs", check.differs()},
                      {"compared", check.compared}, {"unit", check.unit},     {"failures", check.failures},
                      {"notes", check.notes}};
        if (check.difference) entry["difference"] = difference_json(*check.difference);
        checks.push_back(std::move(entry));
    }
    return {{"audit", report.title},
            {"ok", report.ok()},
            {"verdict", report.verdict()},
            {"compared", report.compared()},
            {"checks", std::move(checks)}};
}

std::string to_html_section(const AuditReport& report, std::size_t examples) {
    std::string html =
        fmt::format("<section class=\"parity\">\n<h2>{}</h2>\n<p class=\"{}\">{}</p>\n<table>\n"
                    "<tr><th>list</th><th>compared</th><th>lost</th><th>gained</th><th>renamed</th>"
                    "<th>failures</th></tr>\n",
                    escaped(report.title), report.ok() ? "pass" : "fail", escaped(report.verdict()));
    for (const Check& check : report.checks) html += row_html(check, report.ok(check));
    html += "</table>\n";
    for (const Check& check : report.checks) {
        if (!check.differs()) continue;
        std::string details;
        for (const std::string& failure : check.failures) details += failure + "\n";
        if (check.difference) details += difference_text(*check.difference, examples);
        html += fmt::format("<details><summary>{}</summary>\n<pre>{}</pre></details>\n",
                            escaped(check.subject), escaped(details));
    }
    return html + "</section>\n";
}

} // namespace fmha::parity
