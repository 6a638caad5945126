#include "dispatcher/problem_json.hpp"

#include "dispatcher/plan/plan.hpp"
#include "dispatcher/types/field_json.hpp"

namespace fmha {

using Json = nlohmann::ordered_json;

Problem problem_from_json(const Json& object, const std::string& where) {
    auto problem = fields_from_json<Problem>(object, where);
    const auto signature = object.find("signature");
    if (signature == object.end() || !signature->contains("family"))
        problem.signature.family = main_stage(problem.api_family);
    problem = normalised(problem);
    validate(problem);
    return problem;
}

std::vector<Problem> problems_from_text(const std::string& text, const std::string& source) {
    std::vector<Problem> problems;
    const Json whole = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (whole.is_array()) {
        for (std::size_t i = 0; i < whole.size(); ++i)
            problems.push_back(problem_from_json(whole[i], source + "[" + std::to_string(i) + "]"));
    } else if (!whole.is_discarded()) {
        problems.push_back(problem_from_json(whole, source));
    } else {
        std::size_t number = 0;
        for (std::size_t begin = 0; begin < text.size();) {
            const std::size_t end = std::min(text.find('\n', begin), text.size());
            const std::string line = text.substr(begin, end - begin);
            begin = end + 1;
            const std::string place = source + ":" + std::to_string(++number);
            if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
            try {
                problems.push_back(problem_from_json(Json::parse(line), place));
            } catch (const Json::parse_error& error) {
                throw InputError(place + ": not JSON: " + error.what());
            }
        }
    }
    if (problems.empty()) throw InputError(source + ": holds no problem");
    return problems;
}

} // namespace fmha
