#pragma once

#include "reference/attention.hpp"
#include "reference/numerics/lengths.hpp"

#include <cstdint>

namespace fmha::reference {

/// N-1 to N-3 and N-5, and Sk(b) of P-3, B-4 and B-5. Throws ProblemError (N-3) when one side has both length arrays.
Entry entry_in_cache(const AttentionArgs& args, std::int64_t b);

/// Where one key lies in the views of K and V: batch index and row.
struct KeyPlace {
    std::int64_t page = 0, slot = 0;
};

/// P-2, P-6, B-4 and B-5 for key j of entry b; reads the table entry of that key alone (P-5).
KeyPlace key_place(const AttentionArgs& args, const Entry& entry, std::int64_t b, std::int64_t j);

/// Which of K and V.
enum class KvSide : std::uint8_t { key, value };

/// The element of channel c of one key: L-2, P-1 or B-3.
std::int64_t key_element(const AttentionArgs& args, KvSide side, const KeyPlace& place, std::int64_t hk,
                         std::int64_t c);

/// S-1: whether key j belongs to split s of n.
bool in_split(std::int64_t n, std::int64_t s, std::int64_t seqlen_k, std::int64_t j);

} // namespace fmha::reference
