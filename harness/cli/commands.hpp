#pragma once

#include "harness/cli/command.hpp"

/// One factory a subcommand; each is defined in the file of its command.
namespace fmha::cli {

} // namespace fmha::cli
