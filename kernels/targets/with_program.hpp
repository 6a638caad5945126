#pragma once

#include "dispatcher/types/enums.hpp"
#include "dispatcher/types/error.hpp"
#include "kernels/programs/programs.hpp"

#include <string>
#include <utility>

namespace fmha::targets {

/// Calls `visit` with the program of `family`, a value of type `kernels::Program<family>`, and returns its result.
template <class Visit>
decltype(auto) with_program(KernelFamily family, Visit&& visit) {
    switch (family) {
#define FMHA_PROGRAM(name, ...)                                                                              \
    case KernelFamily::name:                                                                                 \
        return std::forward<Visit>(visit)(kernels::Program<KernelFamily::name>{});
        FMHA_KERNEL_FAMILIES(FMHA_PROGRAM)
#undef FMHA_PROGRAM
    }
    throw InputError("family " + std::to_string(static_cast<int>(family)) + " is not a kernel family");
}

/// Whether kernels of `family` multiply matrices.
inline bool has_products(KernelFamily family) {
    return with_program(family, []<class Program>(Program) { return Program::has_products; });
}

} // namespace fmha::targets
