#pragma once

#include "dispatcher/plan/plan.hpp"
#include "dispatcher/types/json.hpp"
#include "dispatcher/types/problem.hpp"

#include <string>
#include <vector>

namespace fmha {

/// Reads a problem in the form that `fields_to_json` writes; absent keys keep their defaults, and fields that
/// follow from others (the stage, the mask class, …) may be left out. Strict: unknown keys and wrong types throw
/// InputError that starts with `where`; an invalid problem throws ProblemError.
Problem problem_from_json(const Json& object, const std::string& where);

/// A problem, and the other content of its JSON.
struct StatedProblem {
    Problem problem;
    PackedLengths lengths; ///< of `seqstart_q` and `seqstart_k`
    std::string place;     ///< of a text: the source, and which of its problems it is
    /// Sentences about fields that were stated and have no effect (`unused_fields`).
    std::vector<std::string> unused;
};

/// As problem_from_json, with two more keys in group mode: `seqstart_q` and `seqstart_k`, the physical offsets of all entries
/// (N-2), batch + 1 of them from 0 on. They stand for max_seqlen_q and max_seqlen_k where those are left out.
StatedProblem stated_problem_from_json(const Json& object, const std::string& where);

/// Every problem of a text that holds one object, an array of them, or one object a line. Throws InputError
/// when the text is not JSON or holds no problem.
std::vector<StatedProblem> problems_from_text(const std::string& text, const std::string& source);

} // namespace fmha
