#pragma once

#include "harness/cli/options.hpp"

#include <string>

namespace fmha::cli {

/// --cases-root, whose value `cases_root` takes.
void declare_cases_root(OptionSet& options, std::string& root);

/// The folder that relative case names start from: `given`, or, when nothing was given, `cases` of the working
/// directory if it holds case files, otherwise that of the source tree which the command was built from.
std::string cases_root(const std::string& given);

} // namespace fmha::cli
