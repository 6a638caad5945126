#include "dispatcher/types/markup.hpp"
#include "harness/results/kernel_names.hpp"
#include "reports/pictures.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <set>
#include <span>
#include <tuple>

namespace fmha::reports {
namespace {

using harness::CaseResult;

constexpr std::size_t tenths = 10;

/// The ratios of one gate in one family.
struct Margins {
    std::array<std::int64_t, tenths + 1> counts{}; ///< the last one: beyond the limit
    std::vector<double> ratios;

    void add(double ratio) {
        const bool beyond = !(ratio <= 1.0);
        const auto tenth = beyond ? tenths : std::min(tenths - 1, static_cast<std::size_t>(ratio * tenths));
        ++counts[tenth];
        ratios.push_back(beyond && std::isnan(ratio) ? HUGE_VAL : ratio);
    }
    double median() {
        const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
        std::nth_element(ratios.begin(), middle, ratios.end());
        return *middle;
    }
};

/// One row of a table; every cell is markup.
std::string row(const std::vector<std::string>& cells) {
    std::string text = "<tr>";
    for (const std::string& cell : cells) text += cell;
    return text + "</tr>\n";
}

std::string number_cell(const std::string& number) {
    return fmt::format("<td class=\"n\">{}</td>", number);
}

/// Of a case or a kernel, which may be longer than a screen is wide.
std::string name_cell(const std::string& name) {
    return "<td class=\"name\">" + escaped(name) + "</td>";
}

template <NamedEnum Family>
std::string family_cell(Family family) {
    return fmt::format("<td>{}</td>", to_string(family));
}

std::string head(const std::vector<std::string>& titles) {
    std::string text = "<div class=\"scroll\"><table><thead><tr>";
    for (const std::string& title : titles) text += "<th>" + title + "</th>";
    return text + "</tr></thead><tbody>\n";
}

constexpr std::string_view end_of_table = "</tbody></table></div>\n";

} // namespace

std::string margins_section(const std::vector<CaseResult>& results) {
    std::map<std::tuple<ApiFamily, std::string, std::string>, Margins> margins;
    for (const CaseResult& result : results)
        for (const auto& gate : result.gates)
            if (gate.required) margins[{result.family, gate.gate, gate.tensor}].add(gate.ratio);
    if (margins.empty()) return {};
    std::vector<std::string> titles{"family", "gate", "output"};
    for (std::size_t tenth = 1; tenth <= tenths; ++tenth)
        titles.push_back(fmt::format("≤ {:.1f}", 0.1 * static_cast<double>(tenth)));
    titles.insert(titles.end(), {"&gt; 1", "median", "largest"});
    std::string text = "<h2>Margins</h2>\n<p class=\"quiet\">Results by measured / allowed of each gate; "
                       "beyond 1 is red.</p>\n" +
                       head(titles);
    for (auto& [place, of_gate] : margins) {
        const auto& [family, gate, tensor] = place;
        std::vector<std::string> cells{family_cell(family), "<td>" + escaped(gate) + "</td>",
                                       "<td>" + escaped(tensor) + "</td>"};
        const auto most = static_cast<double>(*std::ranges::max_element(of_gate.counts));
        for (std::size_t tenth = 0; tenth <= tenths; ++tenth) {
            const std::int64_t count = of_gate.counts[tenth];
            if (count == 0)
                cells.emplace_back("<td></td>");
            else
                cells.push_back(fmt::format("<td class=\"n bar{}\" style=\"--share:{:.0f}%\">{}</td>",
                                            tenth == tenths ? " beyond" : "",
                                            100.0 * static_cast<double>(count) / most, count));
        }
        cells.push_back(number_cell(fmt::format("{:.3g}", of_gate.median())));
        cells.push_back(number_cell(fmt::format("{:.3g}", *std::ranges::max_element(of_gate.ratios))));
        text += row(cells);
    }
    return text + std::string(end_of_table);
}

std::string known_section(const std::vector<CaseResult>& results) {
    std::map<std::string, std::vector<const CaseResult*>> of_tracker;
    for (const CaseResult& result : results)
        if (!result.tracker.empty() && harness::is_green(result.outcome))
            of_tracker[result.tracker].push_back(&result);
    if (of_tracker.empty()) return {};
    std::string text = "<h2>Known to be bad</h2>\n" + head({"tracker", "case", "outcome", "kernel", "why"});
    for (const auto& [tracker, known] : of_tracker)
        for (const CaseResult* result : known)
            text +=
                row({"<td>" + escaped(tracker) + "</td>", name_cell(result->name),
                     fmt::format("<td class=\"{}\">{}</td>", to_string(result->outcome),
                                 to_string(result->outcome)),
                     name_cell(result->kernel), "<td class=\"said\">" + escaped(result->message) + "</td>"});
    return text + std::string(end_of_table);
}

std::string slowest_section(const std::vector<CaseResult>& results) {
    constexpr std::size_t most = 15;
    std::vector<const CaseResult*> slowest;
    for (const CaseResult& result : results) slowest.push_back(&result);
    const auto shown = slowest.begin() + static_cast<std::ptrdiff_t>(std::min(most, slowest.size()));
    std::partial_sort(slowest.begin(), shown, slowest.end(),
                      [](const CaseResult* x, const CaseResult* y) { return x->seconds > y->seconds; });
    slowest.erase(shown, slowest.end());
    if (slowest.empty() || slowest.front()->seconds <= 0.0) return {};
    std::string text =
        "<h2>Slowest</h2>\n" + head({"case", "seconds", "of the kernel", "of the reference", "kernel"});
    for (const CaseResult* result : slowest)
        text +=
            row({name_cell(result->name), number_cell(fmt::format("{:.3f}", result->seconds)),
                 number_cell(fmt::format("{:.3g}", result->kernel_seconds)),
                 number_cell(fmt::format("{:.3g}", result->reference_seconds)), name_cell(result->kernel)});
    return text + std::string(end_of_table);
}

std::string coverage_section(const Report& report) {
    struct Cell {
        std::set<std::string> kernels;
        std::int64_t listed = 0, results = 0, red = 0;
    };
    std::map<std::tuple<KernelFamily, std::int64_t, std::int64_t>, Cell> cells;
    for (const auto& [place, kernels] : report.listed) cells[place].listed = kernels;
    for (const CaseResult& result : report.results) {
        // Both stand in launch order. A damaged report may have more tiles than names.
        const auto names = harness::kernel_names(result.kernel);
        for (std::size_t stage = 0; stage < result.tiles.size(); ++stage) {
            const harness::KernelTile& tile = result.tiles[stage];
            Cell& cell = cells[{tile.family, tile.m0, tile.n0}];
            cell.kernels.emplace(stage < names.size() ? names[stage] : std::string_view());
            ++cell.results;
            cell.red += harness::is_green(result.outcome) ? 0 : 1;
        }
    }
    if (cells.empty()) return {};
    std::string text = "<h2>Kernels that ran</h2>\n" +
                       head({"family", "tile", "kernels", "of the list", "results", "not green"});
    for (const auto& [place, cell] : cells) {
        const auto& [family, m0, n0] = place;
        // Kernels that loop over no keys have rows alone.
        text += row({family_cell(family),
                     number_cell(n0 == 0 ? fmt::format("{}", m0) : fmt::format("{} × {}", m0, n0)),
                     number_cell(fmt::format("{}", cell.kernels.size())),
                     number_cell(report.listed.empty() ? std::string() : fmt::format("{}", cell.listed)),
                     number_cell(fmt::format("{}", cell.results)),
                     fmt::format("<td class=\"n{}\">{}</td>", cell.red > 0 ? " failed" : "", cell.red)});
    }
    return text + std::string(end_of_table);
}

} // namespace fmha::reports
