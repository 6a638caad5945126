#pragma once

#include "harness/cases/case.hpp"

#include <string>

namespace fmha::cli {

/// The one case that `text` names (a printed name, or a file with a single case), checked against the rules for
/// `arch`. Throws InputError or ProblemError, both of which say what is wrong.
harness::FwdCase load_exchange_case(const std::string& text, const std::string& root,
                                    const std::string& arch);

} // namespace fmha::cli
