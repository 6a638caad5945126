#pragma once

#include "dispatcher/types/args.hpp"

#include <cstdint>

namespace fmha::reference {

/// The input of the oracles: forward attention, the place of its keys, and which of them count.
struct AttentionArgs : FwdArgs {
    KvPlace place;
    std::int64_t num_splits = 1, split = 0; ///< S-1: only keys of `split` count
};

AttentionArgs attention_of(const FwdArgs& args);
AttentionArgs attention_of(const PagedKvArgs& args);
AttentionArgs attention_of(const BatchPrefillArgs& args);
/// All splits together: the result of combining them (S-4).
AttentionArgs attention_of(const SplitKvArgs& args);
/// One split of the main stage (S-2): without sink logit and output scale, which combining adds.
AttentionArgs attention_of(const SplitKvArgs& args, std::int64_t split);

} // namespace fmha::reference
