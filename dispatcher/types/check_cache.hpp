#pragma once

#include "dispatcher/types/args.hpp"

namespace fmha {

/// Pages have up to 2^30 keys and rows of a block table up to 2^31 pages (P-2), so that a row's keys and its place can be counted in 64
/// bits. Throws ProblemError.
void check_page_numbers(const KvPlace& place);

/// The physical page that a row of the block table has for a logical page of entry b: one of the pool (P-2). Throws ProblemError.
std::int64_t checked_page(const KvPlace& place, std::int64_t b, std::int64_t logical);

/// The slot of entry b of a cache that is neither paged nor packed: it is 0 or more and, where the number of slots is known, below
/// that (P-6). Throws ProblemError.
std::int64_t checked_slot(const KvPlace& place, std::int64_t b);

/// Pages of a pool, or slots of a cache that is not packed, that are known to exist: at least one.
std::int64_t known_slots(const Shape& shape, const KvPlace& place);

/// Rules about lengths and tables in host memory, for attention over a cache: tables and lengths that the arguments need are
/// there, lengths are 0 or more and fit the table's rows or the slots (P-3), a list of pages does not decrease and is there where
/// it is looked up only (B-4), every page or slot that holds a key exists (P-2, P-6), and descales that are present are finite
/// and above 0. Entries of a table and descales beyond those are not read (P-5). Throws ProblemError with the rule and the
/// argument's name.
void check_cache(const Shape& shape, const LengthArrays& lengths, const KvPlace& place,
                 const QuantArgs& quant = {});

} // namespace fmha
