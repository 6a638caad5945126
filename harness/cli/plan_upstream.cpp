#include "harness/cli/plan_upstream.hpp"

#include "dispatcher/types/error.hpp"
#include "dispatcher/upstream/chain.hpp"

#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include <string_view>

namespace fmha::cli {

namespace {

using Json = nlohmann::ordered_json;

/// Calls `visit(object, place)` for every problem of the text.
template <class Visit>
void each_problem(const std::string& text, const std::string& source, Visit&& visit) {
    const auto parse = [&](std::string_view part, const std::string& place) {
        try {
            return Json::parse(part);
        } catch (const Json::parse_error& error) {
            throw InputError(fmt::format("{}: not JSON: {}", place, error.what()));
        }
    };
    const auto each_element = [&](const Json& list, const std::string& place) {
        std::size_t index = 0;
        for (const Json& element : list) visit(element, fmt::format("{}[{}]", place, index++));
    };
    const std::string_view first_line = std::string_view(text).substr(0, text.find('\n'));
    if (!Json::accept(first_line) || first_line.size() == text.size() ||
        first_line.size() + 1 == text.size()) {
        const Json document = parse(text, source);
        if (document.is_array()) return each_element(document, source);
        if (document.is_object() && document.contains("cases")) {
            if (!document["cases"].is_array())
                throw InputError(fmt::format("{}.cases: expected an array", source));
            return each_element(document["cases"], source + ".cases");
        }
        return visit(document, source);
    }
    std::size_t number = 0;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        const std::string_view line = std::string_view(text).substr(begin, end - begin);
        begin = end + 1;
        ++number;
        if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
        const std::string place = fmt::format("{}:{}", source, number);
        visit(parse(line, place), place);
    }
}

} // namespace

void plan_upstream_problems(const std::string& text, const std::string& source, bool json,
                            std::ostream& out) {
    upstream::Chains chains(arch::ArchSet::built_in());
    if (text.find_first_not_of(" \t\r\n") == std::string::npos)
        throw InputError(source + ": holds no problem");
    each_problem(text, source, [&](const Json& element, const std::string& place) {
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
    });
}

} // namespace fmha::cli
