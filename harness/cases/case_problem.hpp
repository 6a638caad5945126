#pragma once

#include "harness/cases/case.hpp"

#include "dispatcher/types/problem.hpp"

#include <string_view>

namespace fmha::harness {

/// The problem that a case poses on `arch` (empty = any). ProblemError with the rule for a case that the
/// specification rejects, whether the problem shows it or only its arguments do (p_drop, soft-cap value,
/// scales).
Problem to_problem(const Case& concrete, std::string_view arch);

} // namespace fmha::harness
