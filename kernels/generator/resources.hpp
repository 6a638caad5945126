#pragma once

#include "dispatcher/types/kernel_config.hpp"
#include "kernels/built/manifest.hpp"

#include <map>
#include <string>
#include <string_view>

/// The words of compilers and their tools about kernels, read into records by exported symbol. A number that a text does not
/// have is an InputError: an audit of nothing must not pass.
namespace fmha::generator {

using ResourcesBySymbol = std::map<std::string, built::Resources, std::less<>>;

/// `remarks`: clang's output under -Rpass-analysis=kernel-resource-usage; `listing`: llvm-objdump's under
/// `-t -d`. `where` names them in messages.
ResourcesBySymbol amd_resources(std::string_view remarks, std::string_view listing, const std::string& where);

/// `messages`: the output of ptxas under -v; `cubin`: the object, whose sections give code size and matrix instructions.
/// Dynamic shared memory and occupancy are the launcher's and not in there, see `add_launch`.
ResourcesBySymbol nvidia_resources(std::string_view messages, std::string_view cubin,
                                   const std::string& where);

/// Adds what follows from the launch on NVIDIA: shared memory of a block, and how many blocks a multiprocessor of
/// compute capability 9.0 holds.
void add_launch(built::Resources& resources, const KernelConfig& config);

} // namespace fmha::generator
