#pragma once

#include "dispatcher/types/args.hpp"

#include <cstdint>
#include <span>

namespace fmha {

/// Rules about values that a problem does not hold because no kernel depends on them: p_drop (D-1), the soft-cap (C-1),
/// scales (H-3, O-1), sizes of scale blocks, and the first key of each entry of packed 4-bit values, which V holds
/// along the keys (T-2). `seqstart_k` is [batch + 1] in host memory in group mode; empty = not to be seen from here.
/// Throws ProblemError with the rule and the argument's name.
void check_values(DataType type, const ScoreArgs& score, const DropoutArgs& dropout, const QuantArgs& quant,
                  std::span<const std::int32_t> seqstart_k = {});

/// The part of check_values about seqstart_k (T-2), for a caller that has it from elsewhere; a type that `packs_keys` alone is looked
/// at. Throws ProblemError.
void check_starts(DataType type, std::span<const std::int32_t> seqstart_k);

/// Sink logits in host memory: finite, or −∞ for a head without one (K-5). Throws ProblemError.
void check_sink_logits(const ScoreArgs& score, std::int64_t nhead_q);

/// One scale of a tensor of descales in host memory, `offset` elements from its beginning: finite and above 0, and no e8m0 code
/// that is NaN. Throws ProblemError.
void check_descale(const char* name, const TensorView& view, std::int64_t offset);

/// Where the scale blocks of each entry of a packed batch begin, in host memory: behind the blocks of all entries before, which have
/// ⌈stored length / block size⌉ each. Other arguments have nothing to check. Throws ProblemError.
void check_block_starts(const FwdArgs& args);

/// Descales of forward in host memory: finite and above 0, and no e8m0 code that is NaN. Looks at the elements within the lengths.
/// Throws ProblemError.
void check_descales(const FwdArgs& args);

} // namespace fmha
