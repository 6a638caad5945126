#include "harness/families/attention_data.hpp"

#include "harness/npy/exchange.hpp"
#include "reference/memory.hpp"
#include "reference/visibility.hpp"

#include <algorithm>

namespace fmha::harness {
namespace {

/// Logical rows and random bytes, of which a copy holds those of every entry that is not skipped.
struct OutputExtents {
    std::int64_t rows = 0, random_bytes = 0;
};

OutputExtents outputs_of(const Case& c, const Geometry& geometry) {
    OutputExtents extents;
    for (const EntryGeometry& entry : geometry.entries) {
        if (entry.skipped) continue;
        extents.rows += c.nhead_q * entry.seqlen_q;
        if (c.store_randval) extents.random_bytes += c.nhead_q * entry.seqlen_q * entry.seqlen_k;
    }
    return extents;
}

/// Rows that the reference computes, at most.
std::int64_t judged_rows(const Case& c, const Geometry& geometry, std::int64_t all) {
    if (!c.sampled_rows) return all;
    constexpr std::int64_t sample = 13 + 64; // fixed and random ones of an entry and head
    std::int64_t rows = 0;
    for (const EntryGeometry& entry : geometry.entries) rows += c.nhead_q * std::min(entry.seqlen_q, sample);
    return rows;
}

} // namespace

std::size_t write_attention_reference(const DataSource& source, const TensorSet& set,
                                      const reference::AttentionArgs& args,
                                      const std::filesystem::path& folder, int threads) {
    const auto rows = expected_rows(source.c, args);
    const auto expected =
        reference::attention(args, rows, {.companions = false, .numerics = {}, .threads = threads});
    ReferenceFile o(set.tensor("o").layout());
    std::optional<ReferenceFile> lse, randval;
    if (set.has("lse")) lse.emplace(set.tensor("lse").layout());
    if (set.has("randval")) randval.emplace(set.tensor("randval").layout());
    for (std::size_t r = 0; r < rows.size(); ++r) {
        const auto& id = rows[r];
        const EntryGeometry& entry = source.geometry.entries[static_cast<std::size_t>(id.b)];
        const std::int64_t b = args.shape.mode == Mode::group ? 0 : id.b;
        const std::int64_t row = entry.start_q + first_row(source.c) + id.i;
        const auto n = static_cast<std::int64_t>(r);
        for (std::int64_t d = 0; d < args.shape.hdim_v; ++d)
            o.put(b, id.h, row, d, expected.scale_o * expected.o(n, d));
        if (lse) lse->put(b, id.h, row, 0, expected.lse(n));
        if (!randval) continue;
        const reference::KeyRanges seen = reference::key_ranges(args, id);
        for (std::int64_t j = 0; j < entry.seqlen_k; ++j)
            if (seen.contain(j)) randval->put(b, id.h, row, j, reference::stored_random_byte(args, id, j));
    }
    o.write(folder, "o");
    if (lse) lse->write(folder, "lse");
    if (randval) randval->write(folder, "randval");
    return rows.size();
}

CaseBytes attention_bytes(const Case& c, Fp8Flavour flavour, int threads, std::int64_t tensors,
                          std::optional<std::int64_t> rows, std::int64_t results) {
    const Geometry geometry = geometry_of(c, flavour);
    OutputExtents outputs = outputs_of(c, geometry);
    if (rows) {
        outputs.rows = std::min(outputs.rows, *rows);
        if (c.store_randval) outputs.random_bytes = outputs.rows * geometry.max_seqlen_k;
    }
    constexpr std::int64_t row_name = 24, lse = 4;
    CaseBytes bytes;
    bytes.tensors = tensors;
    bytes.copies = CaseBytes::copies_of_run * (element_bytes(geometry.types.o, outputs.rows * c.hdim_v) +
                                               outputs.rows * (row_name + lse) + outputs.random_bytes);
    const reference::ReferenceExtents extents{.rows = judged_rows(c, geometry, outputs.rows),
                                              .group_rows = c.nhead_q / c.nhead_k * geometry.max_seqlen_q,
                                              .results = results,
                                              .seqlen_k = geometry.max_seqlen_k,
                                              .hdim_q = c.hdim_q,
                                              .hdim_v = c.hdim_v,
                                              .threads = threads};
    bytes.reference = reference::reference_bytes(extents);
    bytes.values = reference::value_bytes(extents);
    return bytes;
}

double attention_flops(const Case& c) {
    const auto of_entry = [](const std::vector<std::int64_t>& lengths, std::int64_t b) {
        return static_cast<double>(lengths.size() == 1 ? lengths[0] : lengths[static_cast<std::size_t>(b)]);
    };
    double pairs = 0.0;
    for (std::int64_t b = 0; b < c.batch; ++b) pairs += of_entry(c.seqlen_q, b) * of_entry(c.seqlen_k, b);
    return 2.0 * pairs * static_cast<double>(c.nhead_q * (c.hdim_q + c.hdim_v));
}

} // namespace fmha::harness
