#pragma once

#include "harness/cases/case.hpp"

#include <string>

namespace fmha::harness {

/// InputError when a case contradicts itself as a text (list lengths, unknown tensor, an exact fill without
/// an exact answer …), which no expectation can excuse. Rules of the specification are judged elsewhere.
void check_form(const Case& concrete, const std::string& where);

/// Of these only that the padding of strides is within its bounds, beyond which sizes overflow.
void check_padding(const Case& concrete, const std::string& where);

} // namespace fmha::harness
