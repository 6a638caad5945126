#include "kernels/catalog/sweep/tiles.hpp"

#include <algorithm>

namespace fmha::catalog::audit {

namespace {

constexpr std::int16_t default_k1 = 32;

bool is_async(Pipeline pipeline) {
    return pipeline == Pipeline::qr_async || pipeline == Pipeline::qr_async_trload ||
           pipeline == Pipeline::qr_async_trload_v3;
}

/// One tile under judgement, with the values that the rules look at.
struct Candidate {
    const SweepTables& tables;
    DataType type;
    HeadDims head;
    Pipeline pipeline;
    std::int64_t bytes; ///< of one element
    Tile tile;
    SweepTables::WarpTile warp;

    /// Bytes that a lane copies at once, in elements.
    std::int64_t copy_elements() const { return tables.async_copy_bytes / bytes; }
};

bool warp_divides(const Candidate& c) {
    return c.tile.m0 % c.warp[0] == 0 && c.tile.n0 % c.warp[1] == 0 && c.tile.k0 % c.warp[2] == 0;
}

bool fits_lds(const Candidate& c) {
    const std::int64_t limit = c.pipeline == Pipeline::qr   ? c.tables.lds_qr
                               : c.pipeline == Pipeline::qs ? c.tables.lds_qs
                                                            : c.tables.lds_other;
    return (c.tile.m0 + c.tile.n0) * static_cast<std::int64_t>(c.tile.k0) * c.bytes <= limit;
}

/// Upstream's short form; the validation of single configurations has the full one.
bool mfma_count(const Candidate& c, const SweepTables::WarpTile& warp) {
    return c.pipeline != Pipeline::qr || c.head.q != 256 ||
           (c.tile.n0 / warp[1]) * (c.tile.k0 / warp[2]) % 8 == 0;
}

bool whole_async_copies(const Candidate& c) {
    if (c.pipeline != Pipeline::qr_async) return true;
    const std::int64_t per_issue = c.tile.m0 / c.warp[0] * 64 * c.copy_elements();
    return per_issue != 0 && static_cast<std::int64_t>(c.tile.n0) * c.tile.k0 % per_issue == 0;
}

bool gfx9_tile(const Candidate& c) {
    if (c.type == DataType::fp32) return true;
    if (c.pipeline != Pipeline::qr && c.pipeline != Pipeline::qr_async && c.pipeline != Pipeline::qs)
        return true;
    if (c.head == HeadDims{128, 128})
        return c.tile.n0 == 128 && (c.pipeline == Pipeline::qr_async ? c.tile.m0 == 128 : c.tile.k0 != 64);
    return c.tile.m0 == 64 || c.tile.m0 == 128 || c.tile.m0 == 192 || c.tile.m0 == 256;
}

bool gfx950_tile(const Candidate& c) {
    if (c.pipeline == Pipeline::qr_async_trload)
        return c.head == HeadDims{64, 64} || (c.head == HeadDims{128, 128} && c.tile.n0 != 128);
    return c.pipeline != Pipeline::qr_async_trload_v3 || c.tile.m0 == 256;
}

/// The master check, and the second check that upstream repeats when it expands a tile: there the gfx9 rule
/// holds on every architecture and the MFMA rule looks at the first warp tile of the data type.
RuleBits judge_forward(const Candidate& c) {
    using enum AuditRule;
    const SweepTables& t = c.tables;
    RuleBits failed = 0;
    if (is_async(c.pipeline))
        failed |=
            unless(async_lds_bytes(t, c.bytes, c.head.v, c.tile, c.warp) <= t.lds_async, sweep_lds_async);
    else
        failed |= unless(fits_lds(c), sweep_lds);
    failed |= unless(c.head.q % c.tile.k0 == 0, sweep_k0_divides);
    if (t.applies(sweep_mfma)) {
        failed |= unless(mfma_count(c, c.warp), sweep_mfma);
        failed |= unless(mfma_count(c, t.warps(c.type).front()), sweep_mfma_first_class);
    }
    if (t.applies(sweep_async_dma)) failed |= unless(whole_async_copies(c), sweep_async_dma);
    failed |= unless(gfx9_tile(c), sweep_gfx9);
    if (t.applies(sweep_gfx950)) failed |= unless(gfx950_tile(c), sweep_gfx950);
    return failed;
}

std::int16_t forward_k1(const SweepTables& tables, DataType type, HeadDims head, const Tile& tile) {
    if (is_fp8_like(type)) return tile.k0;
    for (const auto& row : tables.k1)
        if (row.block == std::array{tile.m0, tile.n0, tile.k0} && row.hdim_q == head.q) return row.k1;
    return default_k1;
}

/// Calls `use(tile)` for every block of the ranges, first axis slowest; n1 and k0max are set, k1 is not.
template <class Use>
void each_block(const SweepTables& tables, HeadDims head, Use&& use) {
    Tile tile;
    tile.n1 = static_cast<std::int16_t>(head.v);
    tile.k0max = tables.padded_head(head.q);
    for (const std::int64_t m0 : tables.m0)
        for (const std::int64_t n0 : tables.n0)
            for (const std::int64_t k0 : tables.k0) {
                tile.m0 = static_cast<std::int16_t>(m0);
                tile.n0 = static_cast<std::int16_t>(n0);
                tile.k0 = static_cast<std::int16_t>(k0);
                use(tile);
            }
}

void append(std::vector<SweepTile>& tiles, const Tile& tile, const SweepTables::WarpTile& warp,
            RuleBits failed) {
    const auto waves = static_cast<std::int16_t>(tile.m0 / warp[0]);
    tiles.push_back({tile,
                     {waves, 1, 1, waves, 1, 1, 1, 1, 1},
                     {warp[0], warp[1], warp[2], warp[0], warp[1], warp[2], 16, 16, 16},
                     failed});
}

} // namespace

std::int64_t async_lds_bytes(const SweepTables& tables, std::int64_t element_bytes, std::int64_t hdim_v,
                             const Tile& tile, const SweepTables::WarpTile& warp) {
    // 32 keys of V for every k1 of the tile, and a limit that does not depend on the architecture: upstream's.
    constexpr std::int64_t keys_of_v = 32, lanes_per_wave = 64, stages = 3;
    const auto over = [](std::int64_t a, std::int64_t b, std::int64_t otherwise) {
        return b == 0 ? otherwise : a / b;
    };
    const std::int64_t pack = 16 / element_bytes;
    const std::int64_t row = tables.lds_banks * 4 / element_bytes;
    const std::int64_t v = keys_of_v / pack * over(hdim_v, row / pack, 0) * (row + pack);
    const std::int64_t waves = tile.m0 / warp[0];
    const std::int64_t copied = tables.async_copy_bytes / element_bytes;
    const std::int64_t lanes = over(tile.k0, copied, 1);
    const std::int64_t groups = over(lanes_per_wave, lanes, 1);
    const std::int64_t issues = over(tile.n0, groups * waves, 0);
    const std::int64_t k = issues * waves * (lanes_per_wave * copied + pack);
    return std::max(k, v) * element_bytes * stages;
}

std::vector<SweepTile> forward_sweep_tiles(const SweepTables& tables, DataType type, HeadDims head,
                                           Pipeline pipeline, TileChecks checks, bool keep_rejected) {
    std::vector<SweepTile> tiles;
    Candidate candidate{tables, type, head, pipeline, tables.bytes(type), {}, {}};
    each_block(tables, head, [&](const Tile& block) {
        candidate.tile = block;
        candidate.tile.k1 = forward_k1(tables, type, head, block);
        for (const auto& warp : tables.warps(type)) {
            candidate.warp = warp;
            RuleBits failed = unless(block.k0 <= head.q, AuditRule::sweep_k0_hdim) |
                              unless(warp_divides(candidate), AuditRule::sweep_warp_multiple);
            if (checks == TileChecks::rules && (failed == 0 || keep_rejected))
                failed |= judge_forward(candidate);
            if (failed == 0 || keep_rejected) append(tiles, candidate.tile, warp, failed);
        }
    });
    return tiles;
}

std::vector<SweepTile> paged_sweep_tiles(const SweepTables& tables, DataType type, HeadDims head,
                                         TileChecks checks, bool keep_rejected) {
    const bool wide = type == DataType::bf8 || to_string(type).find("fp8") != std::string_view::npos;
    const std::int16_t edge = wide ? 32 : 16;
    std::vector<SweepTile> tiles;
    Candidate candidate{tables, type, head, Pipeline::qr_pagedkv, tables.bytes(type), {}, {edge, edge, edge}};
    each_block(tables, head, [&](const Tile& block) {
        candidate.tile = block;
        candidate.tile.k1 = wide ? block.k0 : default_k1;
        RuleBits failed = unless(block.k0 <= head.q, AuditRule::sweep_k0_hdim) |
                          unless(warp_divides(candidate), AuditRule::sweep_warp_multiple);
        if (checks == TileChecks::rules) failed |= unless(fits_lds(candidate), AuditRule::sweep_lds);
        if (failed == 0 || keep_rejected) append(tiles, candidate.tile, candidate.warp, failed);
    });
    return tiles;
}

void set_prefill_k1(const SweepTables& tables, HeadDims head, Tile& tile) {
    tile.k1 = default_k1;
    for (const auto& row : tables.batch_prefill_k1)
        if (row.block == std::array{tile.m0, tile.n0, tile.k0} && row.hdim_q == head.q) tile.k1 = row.k1;
}

} // namespace fmha::catalog::audit
