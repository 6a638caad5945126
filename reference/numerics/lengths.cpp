#include "reference/numerics/lengths.hpp"

#include "dispatcher/types/error.hpp"

#include <string>

namespace fmha::reference {
namespace {

std::int64_t logical_length(const std::int32_t* seqlen, const std::int32_t* cu_seqlen, std::int64_t physical,
                            std::int64_t b, const char* side) {
    if (seqlen != nullptr && cu_seqlen != nullptr)
        throw ProblemError("N-3", std::string("seqlen_") + side, "both",
                           std::string("seqlen_") + side + " and cu_seqlen_" + side +
                               " are both given; at most one may be");
    if (seqlen != nullptr) return seqlen[b];
    if (cu_seqlen != nullptr) return std::int64_t{cu_seqlen[b + 1]} - cu_seqlen[b];
    return physical;
}

} // namespace

Entry entry_of(const FwdArgs& args, std::int64_t b) {
    const LengthArrays& l = args.lengths;
    Entry entry;
    std::int64_t physical_q = args.shape.seqlen_q, physical_k = args.shape.seqlen_k;
    if (args.shape.mode == Mode::group) {
        entry.start_q = l.seqstart_q[b];
        physical_q = l.seqstart_q[b + 1] - entry.start_q;
        if (l.seqstart_k != nullptr) { // absent where pages hold the keys
            entry.start_k = l.seqstart_k[b];
            physical_k = l.seqstart_k[b + 1] - entry.start_k;
        }
    }
    entry.seqlen_q = logical_length(l.seqlen_q, l.cu_seqlen_q, physical_q, b, "q");
    entry.seqlen_k = logical_length(l.seqlen_k, l.cu_seqlen_k, physical_k, b, "k");
    entry.skipped = args.shape.mode == Mode::group && args.shape.min_seqlen_q > 0 &&
                    entry.seqlen_q <= args.shape.min_seqlen_q;
    return entry;
}

} // namespace fmha::reference
