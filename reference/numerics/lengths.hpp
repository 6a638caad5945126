#pragma once

#include "dispatcher/types/args.hpp"

#include <cstdint>

namespace fmha::reference {

/// Logical lengths of one entry and the row at which it starts in packed tensors (section 4).
struct Entry {
    std::int64_t seqlen_q = 0, seqlen_k = 0;
    std::int64_t start_q = 0, start_k = 0; ///< 0 in batch mode
    bool skipped = false;                  ///< by min_seqlen_q (N-5)
};

/// N-1, N-2, N-3 and N-5. Throws ProblemError (N-3) when one side has both length arrays.
Entry entry_of(const FwdArgs& args, std::int64_t b);

} // namespace fmha::reference
