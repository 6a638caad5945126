#include "harness/run/case_memory.hpp"

#include "harness/data/fwd_tensors.hpp"
#include "reference/memory.hpp"

#include <algorithm>

namespace fmha::harness {
namespace {

/// Logical rows and random bytes, of which a copy holds those of every entry that is not skipped.
struct OutputExtents {
    std::int64_t rows = 0, random_bytes = 0;
};

OutputExtents outputs_of(const FwdCase& c, const Geometry& geometry) {
    OutputExtents extents;
    for (const Entry& entry : geometry.entries) {
        if (entry.skipped) continue;
        extents.rows += c.nhead_q * entry.seqlen_q;
        if (c.store_randval) extents.random_bytes += c.nhead_q * entry.seqlen_q * entry.seqlen_k;
    }
    return extents;
}

/// Rows that the reference computes, at most.
std::int64_t judged_rows(const FwdCase& c, const Geometry& geometry, std::int64_t all) {
    if (!c.sampled_rows) return all;
    constexpr std::int64_t sample = 13 + 64; // fixed and random ones of an entry and head
    std::int64_t rows = 0;
    for (const Entry& entry : geometry.entries) rows += c.nhead_q * std::min(entry.seqlen_q, sample);
    return rows;
}

} // namespace

CaseMemory memory_of(const FwdCase& c, Fp8Flavour flavour, int threads) {
    const Geometry geometry = geometry_of(c, flavour);
    const OutputExtents outputs = outputs_of(c, geometry);
    // The first launch, the present one, a third when they differ, and one while stray writes are looked for.
    constexpr std::int64_t copies = 4, row_name = 24, lse = 4;
    CaseMemory memory;
    memory.tensors = tensor_bytes<FwdArgs>(c, flavour);
    memory.copies = copies * (element_bytes(geometry.types.o, outputs.rows * c.hdim_v) +
                              outputs.rows * (row_name + lse) + outputs.random_bytes);
    memory.reference = reference::reference_bytes({.rows = judged_rows(c, geometry, outputs.rows),
                                                   .seqlen_k = geometry.max_seqlen_k,
                                                   .hdim_q = c.hdim_q,
                                                   .hdim_v = c.hdim_v,
                                                   .threads = threads});
    return memory;
}

} // namespace fmha::harness
