#pragma once

#include "dispatcher/types/json.hpp"
#include "dispatcher/types/problem.hpp"

#include <string>
#include <vector>

namespace fmha {

/// Reads a problem in the form that `fields_to_json` writes; absent keys keep their defaults, and what follows
/// from others (the stage, the mask class, …) may be left out. Strict: unknown keys and wrong types throw
/// InputError that starts with `where`; an invalid problem throws ProblemError.
Problem problem_from_json(const Json& object, const std::string& where);

/// Every problem of a text that holds one object, an array of them, or one object a line. Throws InputError
/// when the text is not JSON or holds no problem.
std::vector<Problem> problems_from_text(const std::string& text, const std::string& source);

} // namespace fmha
