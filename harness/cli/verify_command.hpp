#pragma once

#include "harness/cli/commands.hpp"
#include "harness/run/kernel_source.hpp"

#include <functional>

namespace fmha::cli {

/// Gives the kernels of an architecture; throws InputError for one that does not exist.
using KernelSourceFactory = std::function<std::unique_ptr<harness::KernelSource>(const std::string& arch)>;

/// `fmha verify` on kernels of the caller's choice.
std::unique_ptr<Command> make_verify_command(KernelSourceFactory kernels);

} // namespace fmha::cli
