#pragma once

#include "kernels/catalog/sweep/sweep_tables.hpp"

namespace fmha::catalog::audit {

/// A tile of the sweep with its waves and warp tiles, and the rules that remove it.
struct SweepTile {
    Tile tile;
    GemmTriples wave, warp;
    RuleBits failed = 0;
};

/// Which of the rules are asked: `rules` all of them; `exhaustive` only k0 ≤ hdim_q and multiples of the
/// warp.
enum class TileChecks : std::uint8_t { rules, exhaustive };

/// Forward tiles of one pipeline in emission order (m0, n0, k0, warp tile). Tiles that a rule removes are
/// left out unless `keep_rejected`; then `failed` says why.
std::vector<SweepTile> forward_sweep_tiles(const SweepTables& tables, DataType type, HeadDims head,
                                           Pipeline pipeline, TileChecks checks, bool keep_rejected);

/// Tiles of split-KV, paged-KV and batch prefill (whose k1 `set_prefill_k1` changes).
std::vector<SweepTile> paged_sweep_tiles(const SweepTables& tables, DataType type, HeadDims head,
                                         TileChecks checks, bool keep_rejected);

/// k1 of batch prefill: the table's for a few blocks, else 32.
void set_prefill_k1(const SweepTables& tables, HeadDims head, Tile& tile);

/// LDS bytes that an asynchronous pipeline needs for three stages of the larger of K and V.
std::int64_t async_lds_bytes(const SweepTables& tables, std::int64_t element_bytes, std::int64_t hdim_v,
                             const Tile& tile, const SweepTables::WarpTile& warp);

} // namespace fmha::catalog::audit
