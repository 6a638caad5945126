#pragma once

#include "harness/cli/commands.hpp"
#include "harness/run/targets.hpp"
#include "kernels/catalog/catalog.hpp"

#include <functional>

namespace fmha::cli {

/// Gives a target's kernels of some families for which an expression is true (empty: all); throws InputError.
using KernelSourceFactory = std::function<std::unique_ptr<harness::KernelSource>(
    const std::shared_ptr<const harness::Target>& target, const std::string& where,
    catalog::FamilySet families)>;

/// The commands that run cases, on kernels of the caller's choice.
std::unique_ptr<Command> make_verify_command(KernelSourceFactory kernels);
std::unique_ptr<Command> make_shrink_command(KernelSourceFactory kernels);
std::unique_ptr<Command> make_fuzz_command(KernelSourceFactory kernels);
std::unique_ptr<Command> make_compare_command(KernelSourceFactory kernels);

} // namespace fmha::cli
