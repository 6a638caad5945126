#include "dispatcher/types/markup.hpp"
#include "reports/causes.hpp"
#include "reports/pictures.hpp"
#include "reports/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

namespace fmha::reports {
namespace {

using harness::CaseResult;
using harness::Outcome;

constexpr std::string_view style = R"(
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #ffffff; --line: #d5dae1; --quiet: #667080;
        --good: #2e8540; --bad: #c3342f; --odd: #8a5a00; --none: #8892a0; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e8ee; --paper: #14171c; --line: #343b46; --quiet: #98a3b3;
          --good: #58b368; --bad: #ee6a63; --odd: #d9a441; --none: #6c7788; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto; max-width: 76rem; padding: 0 1rem; overflow-wrap: break-word; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; font-size: 13px; } th, td { border: 1px solid var(--line); padding: .25rem .5rem; text-align: left; vertical-align: top; }
td.n { text-align: right; font-variant-numeric: tabular-nums; } td.name { overflow-wrap: anywhere; min-width: 14rem; }
.cell { min-width: 4.5rem; text-align: center; color: #fff; }
.green { background: var(--good); } .red { background: var(--bad); } .grey { background: var(--none); } .known { background: var(--odd); }
.passed, .refused_as_predicted { color: var(--good); } .not_run, .type_absent { color: var(--quiet); } .mistrusted, .failed_as_known { color: var(--odd); }
.failed, .crashed, .timed_out, .refused_unexpectedly, .passed_unexpectedly { color: var(--bad); }
pre { background: color-mix(in srgb, var(--ink) 6%, transparent); padding: .6rem; overflow-x: auto; font-size: 12px; }
.scroll { overflow-x: auto; margin: .75rem 0; } input { font: inherit; padding: .25rem .5rem; width: 24rem; max-width: 100%; box-sizing: border-box; }
.verdict { font-weight: 600; } .quiet { color: var(--quiet); }
.bar { background: linear-gradient(90deg, color-mix(in srgb, var(--good) 45%, transparent) var(--share), transparent var(--share)); }
.bar.beyond { background: color-mix(in srgb, var(--bad) 45%, transparent); }
summary { cursor: pointer; overflow-wrap: anywhere; font-size: 13px; padding: .15rem 0; } details[open] { margin-bottom: 1rem; }
.map { margin: 1rem 0 1.5rem; } .map svg { width: 100%; max-width: 32rem; max-height: 32rem; } figcaption { font-size: 13px; }
.field { fill: none; stroke: var(--quiet); } .wrong { fill: var(--bad); } .tile { stroke: var(--quiet); stroke-dasharray: 3 2; }
thead th { white-space: nowrap; } body > table td { overflow-wrap: anywhere; }
@media screen { .scroll td.name:last-child { min-width: 34rem; } }
@media screen { td.n { white-space: nowrap; } td.said { min-width: 13rem; } }
@media (max-width: 40rem) { body { margin: 1rem auto; } h1 { font-size: 1.15rem; } pre { white-space: pre-wrap; overflow-wrap: anywhere; } }
@media print {
  :root { color-scheme: light; --ink: #000; --paper: #fff; --line: #bbb; --quiet: #555; }
  body { margin: 0; max-width: none; } #find { display: none; } .scroll, pre { overflow: visible; } pre { white-space: pre-wrap; }
  table { font-size: 9px; } th, td, td.name, .cell { min-width: 0; padding: .1rem .2rem; overflow-wrap: anywhere; } thead th { white-space: normal; }
  tr, figure { break-inside: avoid; } .cell, .bar, .wrong { print-color-adjust: exact; } }
)";

/// No other script runs on the page, not even one in a name: the policy has the digest of this one.
constexpr std::string_view script = R"(
const box = document.getElementById('find');
box.addEventListener('input', () => {
  const words = box.value.toLowerCase().split(/\s+/).filter(w => w);
  for (const row of document.querySelectorAll('#all tbody tr'))
    row.hidden = !words.every(w => row.textContent.toLowerCase().includes(w));
});
)";

constexpr std::string_view policy = "default-src 'none'; style-src 'unsafe-inline'; script-src "
                                    "'sha256-L1ghUOhuh/FtdKATICibve5ITdYGKD9HdSQDgfUhM+k='";

struct Cell {
    std::int64_t asked = 0, green = 0, known = 0, judged = 0;
};

/// Families × labels: the cases that were asked and how many of them are green. A failure that is known is none of them.
std::string heat_map(const std::vector<CaseResult>& results) {
    std::map<ApiFamily, std::map<std::string, Cell>> cells;
    std::set<std::string> labels;
    for (const auto& result : results) {
        std::vector<std::string> features = result.labels;
        if (features.empty()) features.emplace_back("(no label)");
        features.emplace_back("all");
        for (const auto& label : std::set<std::string>(features.begin(), features.end())) {
            labels.insert(label);
            Cell& cell = cells[result.family][label];
            ++cell.asked;
            const bool known = result.outcome == Outcome::failed_as_known;
            cell.known += known ? 1 : 0;
            cell.green += harness::is_green(result.outcome) && !known ? 1 : 0;
            cell.judged += harness::is_judged(result.outcome) ? 1 : 0;
        }
    }
    std::string text = "<div class=\"scroll\"><table><thead><tr><th>feature</th>";
    for (const auto& [family, unused] : cells) text += fmt::format("<th>{}</th>", to_string(family));
    text += "</tr></thead><tbody>\n";
    std::vector<std::string> lines{"all"};
    std::ranges::copy_if(labels, std::back_inserter(lines), [](const auto& label) { return label != "all"; });
    for (const auto& label : lines) {
        text += fmt::format("<tr><th>{}</th>", escaped(label));
        for (const auto& [family, row] : cells) {
            const auto found = row.find(label);
            if (found == row.end()) {
                text += "<td class=\"quiet\">no case</td>";
                continue;
            }
            const Cell& cell = found->second;
            const char* colour = cell.green + cell.known < cell.asked ? "red"
                                 : cell.known > 0                     ? "known"
                                 : cell.judged == 0                   ? "grey"
                                                                      : "green";
            text += fmt::format(
                "<td class=\"cell {}\" title=\"{} of {} green, {} failed as known, {} judged\">{}/{}</td>",
                colour, cell.green, cell.asked, cell.known, cell.judged, cell.green, cell.asked);
        }
        text += "</tr>\n";
    }
    return text + "</tbody></table></div>\n";
}

std::string worst_elements(const CaseResult& result) {
    if (result.worst.empty() || harness::is_pass(result.outcome)) return {};
    std::string text =
        "<div class=\"scroll\"><table><thead><tr><th>worst</th><th>b</th><th>h</th><th>row</th>"
        "<th>column</th><th>got</th><th>expected</th><th>limit</th></tr></thead><tbody>\n";
    for (const auto& d : result.worst) {
        text += fmt::format("<tr><td>{}</td>", escaped(d.tensor));
        for (const std::int64_t place : {d.b, d.h, d.row, d.column})
            text += fmt::format("<td class=\"n\">{}</td>", place);
        text += fmt::format(
            "<td class=\"n\">{:.7g}</td><td class=\"n\">{:.7g}</td><td class=\"n\">{:.3g}</td></tr>\n", d.got,
            d.expected, d.limit);
    }
    return text + "</tbody></table></div>\n";
}

/// Every red result, to be opened; the first one of each family is.
std::string failures(const std::vector<CaseResult>& results) {
    struct Family {
        std::size_t red = 0, maps = 0;
    };
    std::map<ApiFamily, Family> families;
    for (const auto& result : results)
        if (!harness::is_green(result.outcome)) families[result.family];
    if (families.empty()) return "<p>None.</p>\n";
    // Each map may take as much as the text of a hundred results.
    constexpr std::size_t most_maps = 100;
    const std::size_t share = most_maps / families.size();
    std::string text;
    for (const auto& result : results) {
        if (harness::is_green(result.outcome)) continue;
        Family& family = families[result.family];
        text += fmt::format(
            "<details{}><summary><span class=\"{}\">{}</span> {}</summary>\n<pre>{}</pre>\n{}",
            ++family.red == 1 ? " open" : "", to_string(result.outcome), escaped(failed_by(result)),
            escaped(result.name), escaped(failure_words(result)), worst_elements(result));
        for (const auto& map : result.maps)
            if (++family.maps <= share) text += error_map_svg(map);
        text += "</details>\n";
    }
    for (const auto& [name, family] : families)
        if (family.maps > share)
            text += fmt::format(
                "<p class=\"quiet\">Of {} the first {} of {} maps of wrong elements are drawn.</p>\n",
                to_string(name), share, family.maps);
    return text;
}

/// Largest measured / allowed over the required gates; "-" where none has judged, which is no margin of 0.
std::string margin_use(const CaseResult& result) {
    double largest = -1.0;
    for (const auto& gate : result.gates)
        if (gate.required) largest = std::max(largest, gate.ratio);
    return largest < 0.0 ? "-" : fmt::format("{:.2f}", largest);
}

std::string all_results(const std::vector<CaseResult>& results) {
    std::string text =
        "<p><input id=\"find\" placeholder=\"words that a row must contain\" "
        "aria-label=\"filter results\"></p><div class=\"scroll\"><table "
        "id=\"all\"><thead><tr><th>case</th><th>outcome</th>"
        "<th>margin used</th><th>rows</th><th>seconds</th><th>kernel</th></tr></thead><tbody>\n";
    for (const auto& result : results)
        text += fmt::format(
            "<tr><td class=\"name\" title=\"{}\">{}</td><td class=\"{}\">{}</td><td class=\"n\">{}</td>"
            "<td class=\"n\">{}</td><td class=\"n\">{:.3f}</td><td class=\"name\">{}</td></tr>\n",
            escaped(result.about), escaped(result.name), to_string(result.outcome), to_string(result.outcome),
            margin_use(result), result.rows, result.seconds, escaped(result.kernel));
    return text + "</tbody></table></div>\n";
}

} // namespace

std::string html(const Report& report) {
    const auto& info = report.info;
    std::string facts;
    std::vector<std::pair<const char*, std::string>> rows = {
        {"command", info.command},   {"target", info.target},
        {"architecture", info.arch}, {"kernels", info.kernels},
        {"started", info.started},   {"seconds", fmt::format("{:.1f}", info.seconds)},
        {"machine", info.machine},   {"compiler", info.compiler},
        {"version", info.version}};
    if (info.resumed > 0)
        rows.emplace_back("continued", fmt::format("{} of the cases had finished in earlier processes, whose "
                                                   "time is not in the seconds",
                                                   info.resumed));
    for (const std::string& sentence : info.left_out) rows.emplace_back("left out", sentence);
    for (const std::string& line : info.devices) rows.emplace_back("shared", line);
    // Files that were merged do not tell everything.
    for (const auto& [name, value] : rows)
        if (!value.empty()) facts += fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", name, escaped(value));
    std::string sections;
    for (const std::string& section : report.sections) sections += section;
    return fmt::format(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta "
        "http-equiv=\"Content-Security-Policy\" content=\"{}\"><meta name=\"viewport\" "
        "content=\"width=device-width, initial-scale=1\"><title>fmha verify: "
        "{}</title><style>{}</style></head><body>\n"
        "<h1>fmha verify: <span class=\"verdict {}\">{}</span></h1>\n<pre>{}</pre>\n<table>{}</table>\n"
        "<h2>Families × features</h2>\n<p class=\"quiet\">Green results without known failures / asked "
        "results.</p>\n{}"
        "<h2>Not green</h2>\n{}{}{}{}{}{}{}<h2>All results</h2>\n{}<script>{}</script></body></html>\n",
        policy, report.ledger.green() ? "green" : "red", style, report.ledger.green() ? "passed" : "failed",
        report.ledger.green() ? "green" : "red", escaped(report.ledger.text()), facts,
        heat_map(report.results), causes_section(report.results), failures(report.results),
        known_section(report.results), sections, margins_section(report.results), coverage_section(report),
        slowest_section(report.results), all_results(report.results), script);
}

} // namespace fmha::reports
