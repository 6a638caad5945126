#include "harness/cli/plan_upstream.hpp"

#include "dispatcher/types/error.hpp"
#include "dispatcher/types/json.hpp"
#include "dispatcher/types/strict_json.hpp"
#include "dispatcher/upstream/chain.hpp"

#include <fmt/ostream.h>

#include <vector>

namespace fmha::cli {

namespace {

/// The problems of a text in any of the forms of `json_values`, or of upstream's file, an object with "cases".
std::vector<PlacedJson> upstream_problems(const std::string& text, const std::string& source) {
    auto values = json_values(text, source);
    if (values.size() > 1 || !values.front().value.is_object() || !values.front().value.contains("cases"))
        return values;
    const Json cases = std::move(values.front().value["cases"]);
    if (!cases.is_array()) throw InputError(fmt::format("{}.cases: expected an array", source));
    values.clear();
    for (std::size_t i = 0; i < cases.size(); ++i)
        values.push_back({fmt::format("{}.cases[{}]", source, i), cases[i]});
    return values;
}

} // namespace

void plan_upstream_problems(const std::string& text, const std::string& source, bool json,
                            std::ostream& out) {
    upstream::Chains chains(arch::ArchSet::built_in());
    for (const auto& [place, element] : upstream_problems(text, source)) {
        const upstream::Problem problem = upstream::problem_from_json(element, place);
        const Json selected = upstream::selection_to_json(problem, chains.of(problem.arch).select(problem));
        if (json) {
            Json answer;
            answer["family"] = element["family"];
            answer["problem"] = element["problem"];
            answer["selected"] = selected;
            fmt::print(out, "{}\n", answer.dump());
        } else {
            fmt::print(out, "{}: {}\n", place, selected.is_null() ? "no kernel" : selected.dump());
        }
    }
}

} // namespace fmha::cli
