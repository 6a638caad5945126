#include "reports/causes.hpp"

#include "dispatcher/types/markup.hpp"
#include "dispatcher/types/visible_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <utility>

namespace fmha::reports {
namespace {

using harness::CaseResult;

/// Kinds that say more than the results by themselves.
std::vector<Cause> telling(const std::vector<CaseResult>& results) {
    auto causes = causes_of(results);
    if (causes.empty() || causes.front().results < 2) causes.clear();
    return causes;
}

/// A refusal that did not happen, and a crash before a kernel was chosen, have none.
std::string kernel_of(const Cause& cause) {
    return cause.kernel.empty() ? "no kernel" : cause.kernel;
}

std::string others(std::size_t all, std::size_t shown) {
    return shown < all ? fmt::format("and {} more kinds", all - shown) : std::string();
}

} // namespace

std::string failed_by(const CaseResult& result) {
    const auto gate = std::ranges::find_if(result.gates, &harness::GateVerdict::failed);
    if (gate == result.gates.end()) return std::string(to_string(result.outcome));
    return gate->tensor.empty() ? gate->gate : gate->gate + " " + gate->tensor;
}

std::vector<Cause> causes_of(const std::vector<CaseResult>& results) {
    std::map<std::pair<std::string, std::string>, Cause> known;
    for (const CaseResult& result : results) {
        if (harness::is_green(result.outcome)) continue;
        std::string what = failed_by(result);
        Cause& cause = known[{what, result.kernel}];
        if (++cause.results == 1) cause = {1, std::move(what), result.kernel, result.name};
    }
    std::vector<Cause> causes;
    for (auto& [key, cause] : known) causes.push_back(std::move(cause));
    std::ranges::stable_sort(causes, std::ranges::greater(), &Cause::results);
    return causes;
}

std::string causes_section(const std::vector<CaseResult>& results) {
    const auto causes = telling(results);
    if (causes.empty()) return {};
    const std::size_t shown = std::min<std::size_t>(20, causes.size());
    std::string text = "<p class=\"quiet\">By first gate and kernel, most results first.</p>\n<div "
                       "class=\"scroll\"><table><thead><tr>"
                       "<th>red</th><th>gate</th><th>kernel</th><th>first case</th></tr></thead><tbody>\n";
    for (const Cause& cause : std::span(causes).first(shown))
        text +=
            fmt::format("<tr><td class=\"n\">{}</td><td>{}</td><td class=\"name\">{}</td><td "
                        "class=\"name\">{}</td></tr>\n",
                        cause.results, escaped(cause.what), escaped(kernel_of(cause)), escaped(cause.first));
    text += "</tbody></table></div>\n";
    if (const auto more = others(causes.size(), shown); !more.empty())
        text += fmt::format("<p class=\"quiet\">{}.</p>\n", more);
    return text;
}

std::string causes_text(const std::vector<CaseResult>& results) {
    const auto causes = telling(results);
    if (causes.empty()) return {};
    const std::size_t shown = std::min<std::size_t>(10, causes.size());
    std::string text = "Red by first gate and kernel, most results first:\n";
    for (const Cause& cause : std::span(causes).first(shown))
        text += fmt::format("{:>6}  {:<8}  {}\n{:>18}{}\n", cause.results, visible_line(cause.what),
                            visible_line(kernel_of(cause)), "", visible_line(cause.first));
    if (const auto more = others(causes.size(), shown); !more.empty())
        text += fmt::format("{:>8}{}\n", "", more);
    return text + "\n";
}

} // namespace fmha::reports
