#pragma once

#include "harness/cli/command.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace fmha::cli {

/// The kernels of `--compile-only` of a command that runs kernels.
struct KernelsToBuild {
    std::vector<std::string> list; ///< options of the list
    std::string family;            ///< empty: all of the list
    std::string target, arch;      ///< as given; an empty architecture is the usual one of `fmha build`
    std::string arch_dir;          ///< empty: the architectures that are compiled in
    std::string folder;            ///< empty: the usual one
    std::int64_t jobs = 0;         ///< compilers at a time; 0: one a hardware thread
};

/// Builds the kernels of a list as `fmha build` does and returns its exit code. Kernels of the other targets than hip are parts of
/// this program: then it says so. Throws InputError when no list is named.
int build_kernels(const KernelsToBuild& kernels, const Streams& streams);

} // namespace fmha::cli
