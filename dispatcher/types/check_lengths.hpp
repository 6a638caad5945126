#pragma once

#include "dispatcher/types/args.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace fmha {

/// Rules about lengths in host memory, for attention without a cache: offsets of packed sequences begin with 0 and do not decrease
/// (N-2), every
/// logical length is 0 or more and fits the allocated one (N-1), and max_seqlen_q of a packed batch bounds those of queries
/// (N-2). Throws ProblemError with the rule and the argument's name.
void check_lengths(const Shape& shape, const LengthArrays& lengths);

/// The same for the queries of attention over a cache, whose keys `check_cache` checks.
void check_query_lengths(const Shape& shape, const LengthArrays& lengths);

/// The physical length of entry b of a packed batch. Throws ProblemError when offsets do not begin with 0 or decrease (N-2);
/// a caller that relies on that asks for all entries.
std::int64_t packed_length(const std::int32_t* seqstart, const char* field, std::int64_t b);

/// The physical lengths of all entries, from batch + 1 offsets. Throws as packed_length does.
std::vector<std::int64_t> packed_lengths(std::span<const std::int32_t> seqstart, const char* field);

/// The logical queries and keys of entry b of attention without a cache (N-1). Throw ProblemError where they break a rule.
std::int64_t query_length(const Shape& shape, const LengthArrays& lengths, std::int64_t b);
std::int64_t key_length(const Shape& shape, const LengthArrays& lengths, std::int64_t b);

} // namespace fmha
