#pragma once

#include "dispatcher/types/args.hpp"
#include "reference/numerics/lengths.hpp"

#include <cstdint>

namespace fmha::reference {

using Decoder = double (*)(ElementType, std::uint32_t);

/// The factor that turns a stored Q element into its real value (15.1, 15.2, 15.3, 15.6): per tensor, per
/// block of query rows, or per 32 channels. Throws ProblemError for a mode that forward lacks (15.4, 15.5).
double q_descale(const FwdArgs& args, const Entry& entry, Decoder decode, std::int64_t b, std::int64_t h,
                 std::int64_t i, std::int64_t c);
double k_descale(const FwdArgs& args, const Entry& entry, Decoder decode, std::int64_t b, std::int64_t hk,
                 std::int64_t j, std::int64_t c);
double v_descale(const FwdArgs& args, Decoder decode, std::int64_t b, std::int64_t hk, std::int64_t j,
                 std::int64_t c);

} // namespace fmha::reference
