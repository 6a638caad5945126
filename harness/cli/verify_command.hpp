#pragma once

#include "harness/cli/commands.hpp"
#include "harness/run/kernel_source.hpp"

#include <functional>

namespace fmha::cli {

/// Gives the kernels of an architecture for which an SQL expression holds (empty: all); throws InputError.
using KernelSourceFactory =
    std::function<std::unique_ptr<harness::KernelSource>(const std::string& arch, const std::string& where)>;

/// `fmha verify` on kernels of the caller's choice.
std::unique_ptr<Command> make_verify_command(KernelSourceFactory kernels);

} // namespace fmha::cli
