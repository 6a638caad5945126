#pragma once

#include "harness/cases/case.hpp"

#include <string>

namespace fmha::harness {

/// Whether tensors may have more than 2^32 elements, as shapes that are timed may: a shape without room is a result there.
enum class Sizes { limited, any };

/// InputError when a case contradicts itself as a text (list lengths, unknown tensor, an exact fill without
/// an exact answer …), which no expectation can excuse. Rules of the specification are judged elsewhere.
void check_form(const Case& concrete, const std::string& where, Sizes sizes = Sizes::limited);

} // namespace fmha::harness
