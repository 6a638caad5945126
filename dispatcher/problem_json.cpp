#include "dispatcher/problem_json.hpp"

#include "dispatcher/types/error.hpp"
#include "dispatcher/types/field_json.hpp"
#include "dispatcher/types/json.hpp"
#include "dispatcher/types/problem_use.hpp"
#include "dispatcher/types/strict_json.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace fmha {
namespace {

/// The problem of an object without those of its keys that are no fields, `others`. `complete` may add values that follow from them.
template <class Complete>
Problem completed_problem(const Json& object, const std::string& where, std::string_view others,
                          Complete complete) {
    auto problem = fields_from_json<Problem>(object, where, others);
    const auto signature = object.find("signature");
    if (signature == object.end() || !signature->contains("family"))
        problem.signature.family = main_stage(problem.api_family);
    complete(problem);
    problem = normalised(problem);
    try {
        validate(problem);
    } catch (const ProblemError& error) {
        // Which of a file's problems it was.
        throw ProblemError(error.rule(), error.field(), error.value(),
                           fmt::format("{} ({})", error.sentence(), where));
    }
    return problem;
}

/// The lengths between the offsets of `key`; none when the object has no such key.
std::vector<std::int64_t> lengths_between(const Json& object, std::string_view key,
                                          const std::string& where) {
    const auto found = object.find(key);
    if (found == object.end()) return {};
    std::vector<std::int32_t> offsets;
    try {
        offsets = found->get<std::vector<std::int32_t>>();
    } catch (const JsonError&) {
        offsets.clear();
    }
    if (offsets.size() < 2 || offsets.front() != 0 || !std::ranges::is_sorted(offsets))
        throw InputError(fmt::format(
            "{}: {}: expected an array of offsets from 0 on that do not decrease, below 2^31, one "
            "more than entries, got {}",
            where, key, found->dump()));
    std::vector<std::int64_t> lengths;
    for (std::size_t b = 1; b < offsets.size(); ++b)
        lengths.push_back(std::int64_t{offsets[b]} - offsets[b - 1]);
    return lengths;
}

} // namespace

Problem problem_from_json(const Json& object, const std::string& where) {
    return completed_problem(object, where, {}, [](Problem&) {});
}

StatedProblem stated_problem_from_json(const Json& object, const std::string& where) {
    if (!object.is_object()) return {problem_from_json(object, where), {}, where, {}};
    Json fields = Json::object();
    for (const auto& [key, value] : object.items())
        if (key != "seqstart_q" && key != "seqstart_k") fields[key] = value;
    StatedProblem stated;
    stated.place = where;
    PackedLengths& lengths = stated.lengths;
    lengths.physical_q = lengths_between(object, "seqstart_q", where);
    lengths.physical_k = lengths_between(object, "seqstart_k", where);
    const auto complete = [&](std::string_view key, const std::vector<std::int64_t>& entries,
                              const Problem& problem, std::int64_t& longest) {
        if (entries.empty()) return;
        if (problem.signature.mode != Mode::group)
            throw InputError(fmt::format("{}: {}: a batch that is not packed has no offsets", where, key));
        if (static_cast<std::int64_t>(entries.size()) != problem.batch)
            throw InputError(fmt::format("{}: {}: has {} offsets, batch {} needs {}", where, key,
                                         entries.size() + 1, problem.batch, problem.batch + 1));
        if (longest == 0) longest = std::ranges::max(entries);
    };
    stated.problem = completed_problem(fields, where, "seqstart_q, seqstart_k", [&](Problem& problem) {
        complete("seqstart_q", lengths.physical_q, problem, problem.max_seqlen_q);
        complete("seqstart_k", lengths.physical_k, problem, problem.max_seqlen_k);
        stated.unused = unused_fields(problem);
    });
    return stated;
}

std::vector<StatedProblem> problems_from_text(const std::string& text, const std::string& source) {
    std::vector<StatedProblem> problems;
    for (const auto& [place, value] : json_values(text, source))
        problems.push_back(stated_problem_from_json(value, place));
    return problems;
}

} // namespace fmha
