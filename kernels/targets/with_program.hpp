#pragma once

#include "dispatcher/types/enums.hpp"
#include "kernels/programs/programs.hpp"

#include <optional>
#include <string>
#include <utility>

namespace fmha::targets {

/// Why nothing runs the kernels of a family: its program is not written.
struct NoProgram {
    KernelFamily family = KernelFamily::fwd;

    /// One sentence.
    std::string reason() const { return "there is no program for family " + std::string(to_string(family)); }
};

/// Calls `visit` with the program of `family`, a value of type `kernels::Program<family>`. The only place that knows which
/// families have one; of the others it returns the reason and calls nothing.
template <class Visit>
[[nodiscard]] std::optional<NoProgram> with_program(KernelFamily family, Visit&& visit) {
    switch (family) {
    case KernelFamily::fwd:
        std::forward<Visit>(visit)(kernels::Program<KernelFamily::fwd>{});
        return std::nullopt;
    case KernelFamily::fwd_pagedkv:
        std::forward<Visit>(visit)(kernels::Program<KernelFamily::fwd_pagedkv>{});
        return std::nullopt;
    case KernelFamily::fwd_splitkv:
        std::forward<Visit>(visit)(kernels::Program<KernelFamily::fwd_splitkv>{});
        return std::nullopt;
    case KernelFamily::fwd_splitkv_combine:
        std::forward<Visit>(visit)(kernels::Program<KernelFamily::fwd_splitkv_combine>{});
        return std::nullopt;
    case KernelFamily::fwd_appendkv:
        std::forward<Visit>(visit)(kernels::Program<KernelFamily::fwd_appendkv>{});
        return std::nullopt;
    case KernelFamily::bwd_dot_do_o:
        std::forward<Visit>(visit)(kernels::Program<KernelFamily::bwd_dot_do_o>{});
        return std::nullopt;
    case KernelFamily::bwd_dq_dk_dv:
        std::forward<Visit>(visit)(kernels::Program<KernelFamily::bwd_dq_dk_dv>{});
        return std::nullopt;
    case KernelFamily::bwd_convert_dq:
        std::forward<Visit>(visit)(kernels::Program<KernelFamily::bwd_convert_dq>{});
        return std::nullopt;
    case KernelFamily::batch_prefill:
        std::forward<Visit>(visit)(kernels::Program<KernelFamily::batch_prefill>{});
        return std::nullopt;
    default:
        return NoProgram{family};
    }
}

/// Whether kernels of `family` multiply matrices; true for a family without a program.
inline bool has_products(KernelFamily family) {
    bool products = true;
    (void)with_program(family, [&]<class Program>(Program) { products = Program::has_products; });
    return products;
}

} // namespace fmha::targets
