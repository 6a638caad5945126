#pragma once

#include "dispatcher/types/json.hpp"
#include "harness/results/result.hpp"

#include <string>
#include <string_view>

namespace fmha::harness {

/// The JSON form of results (schema in docs/gates.md): reports show it, and worker processes send it.
Json to_json(const CaseResult& result);
Json to_json(const RunInfo& info);
Json to_json(const Deviation& deviation);

/// Inverse of `to_json`; throws InputError for anything that it did not write.
CaseResult result_from_json(const Json& object);
std::vector<CaseResult> results_from_json(const Json& array);
std::vector<Deviation> deviations_from_json(const Json& array);

/// A number, or one of the strings "inf", "-inf" and "nan" for those that JSON lacks.
Json number_to_json(double value);
/// Inverse of it; throws InputError for anything else.
double number_from_json(const Json& value);

/// Several results as one line of text, and back.
std::string pack(const std::vector<CaseResult>& results);
std::vector<CaseResult> unpack(std::string_view text);

} // namespace fmha::harness
