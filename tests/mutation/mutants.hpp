#pragma once

#include "dispatcher/types/kernel_config.hpp"
#include "dispatcher/types/kernel_instance.hpp"

#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace fmha::test {

/// A mistake that the copies of the programs' headers can make.
struct Mutant {
    int place = 0;
    int by = 0;              ///< what is added; 1 where the mistake has no size
    std::string_view header; ///< "mask.hpp"
    /// "compare", "condition", "arithmetic", "constant", "drop", "swap" or "member"
    std::string_view operation;
    std::string_view expression; ///< the place in the words of the original

    /// "mask.hpp: compare -1: row < rows"
    std::string name() const;
};

/// All of them, by place.
std::span<const Mutant> mutants();

/// The host's kernel of `config`, compiled from the copies.
std::shared_ptr<const KernelInstance> mutated_kernel(const KernelConfig& config);

} // namespace fmha::test
