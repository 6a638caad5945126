#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fmha::parity {

/// A set of endings (each empty or a row of tokens that begin with '_') as one line that people can read:
/// `(a|b)` is a choice, `[a]` may be absent. Kernel lists are products of features, so thousands of endings
/// are a line: `_vr(_npad|_psskddv)(_mask|_nmask)[_lse=1]`. The text depends on the set alone.
std::string write_pattern(std::vector<std::string> endings);

/// Every ending that a pattern stands for, in no particular order. Throws InputError for unbalanced brackets.
std::vector<std::string> expand_pattern(std::string_view pattern);

} // namespace fmha::parity
