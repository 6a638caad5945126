#pragma once

#include "dispatcher/types/enums.hpp"
#include "dispatcher/types/error.hpp"
#include "kernels/programs/programs.hpp"

#include <string>
#include <utility>

namespace fmha::targets {

/// Calls `visit` with the program of `family`, a value of type `kernels::Program<family>`, and returns what it returns. The
/// only list of programs; a family that is not in it does not compile without a warning.
template <class Visit>
decltype(auto) with_program(KernelFamily family, Visit&& visit) {
    switch (family) {
    case KernelFamily::fwd:
        return std::forward<Visit>(visit)(kernels::Program<KernelFamily::fwd>{});
    case KernelFamily::fwd_pagedkv:
        return std::forward<Visit>(visit)(kernels::Program<KernelFamily::fwd_pagedkv>{});
    case KernelFamily::fwd_splitkv:
        return std::forward<Visit>(visit)(kernels::Program<KernelFamily::fwd_splitkv>{});
    case KernelFamily::fwd_splitkv_combine:
        return std::forward<Visit>(visit)(kernels::Program<KernelFamily::fwd_splitkv_combine>{});
    case KernelFamily::fwd_appendkv:
        return std::forward<Visit>(visit)(kernels::Program<KernelFamily::fwd_appendkv>{});
    case KernelFamily::batch_prefill:
        return std::forward<Visit>(visit)(kernels::Program<KernelFamily::batch_prefill>{});
    case KernelFamily::bwd_dot_do_o:
        return std::forward<Visit>(visit)(kernels::Program<KernelFamily::bwd_dot_do_o>{});
    case KernelFamily::bwd_dq_dk_dv:
        return std::forward<Visit>(visit)(kernels::Program<KernelFamily::bwd_dq_dk_dv>{});
    case KernelFamily::bwd_convert_dq:
        return std::forward<Visit>(visit)(kernels::Program<KernelFamily::bwd_convert_dq>{});
    }
    throw InputError("family " + std::to_string(static_cast<int>(family)) + " is not a kernel family");
}

/// Whether kernels of `family` multiply matrices.
inline bool has_products(KernelFamily family) {
    return with_program(family, []<class Program>(Program) { return Program::has_products; });
}

} // namespace fmha::targets
