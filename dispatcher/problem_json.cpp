#include "dispatcher/problem_json.hpp"

#include "dispatcher/plan/plan.hpp"
#include "dispatcher/types/field_json.hpp"
#include "dispatcher/types/json.hpp"
#include "dispatcher/types/strict_json.hpp"

namespace fmha {

Problem problem_from_json(const Json& object, const std::string& where) {
    auto problem = fields_from_json<Problem>(object, where);
    const auto signature = object.find("signature");
    if (signature == object.end() || !signature->contains("family"))
        problem.signature.family = main_stage(problem.api_family);
    problem = normalised(problem);
    try {
        validate(problem);
    } catch (const ProblemError& error) {
        // Which of a file's problems it was.
        const std::string sentence = std::string(error.what()).substr(error.rule().size() + 2);
        throw ProblemError(error.rule(), error.field(), error.value(), sentence + " (" + where + ")");
    }
    return problem;
}

std::vector<Problem> problems_from_text(const std::string& text, const std::string& source) {
    std::vector<Problem> problems;
    for (const auto& [place, value] : json_values(text, source))
        problems.push_back(problem_from_json(value, place));
    return problems;
}

} // namespace fmha
