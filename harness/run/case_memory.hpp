#pragma once

#include "dispatcher/types/element.hpp"
#include "harness/cases/case.hpp"

#include <cstdint>

namespace fmha::harness {

/// Bytes that running a case takes, without a kernel's own.
struct CaseMemory {
    std::int64_t tensors = 0;   ///< all of them, small arrays among them
    std::int64_t copies = 0;    ///< of what kernels wrote, as many as are compared at a time
    std::int64_t reference = 0; ///< rows and work of both oracles

    std::int64_t total() const { return tensors + copies + reference; }
};

/// `threads`: those of the reference. Throws InputError for a case that cannot be laid out.
CaseMemory memory_of(const FwdCase& c, Fp8Flavour flavour, int threads);

} // namespace fmha::harness
