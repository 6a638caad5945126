#pragma once

#include "reference/attention.hpp"
#include "reference/numerics/lengths.hpp"
#include "reference/numerics/places.hpp"

#include <cstdint>

namespace fmha::reference {

using Decoder = double (*)(ElementType, std::uint32_t);

/// The factor that turns a stored Q element into its real value (15.1 to 15.6): per tensor, per block of query rows, per
/// row, or per 32 channels. Throws ProblemError for a mode of pages (15.4, 15.5) where there are none.
double q_descale(const AttentionArgs& args, const Entry& entry, Decoder decode, std::int64_t b,
                 std::int64_t h, std::int64_t i, std::int64_t c);
/// `place` is that of key j.
double k_descale(const AttentionArgs& args, const Entry& entry, Decoder decode, std::int64_t b,
                 std::int64_t hk, std::int64_t j, std::int64_t c, const KeyPlace& place);
double v_descale(const AttentionArgs& args, Decoder decode, std::int64_t b, std::int64_t hk, std::int64_t j,
                 std::int64_t c, const KeyPlace& place);

} // namespace fmha::reference
