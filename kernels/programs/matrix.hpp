#pragma once

#include "dispatcher/types/args.hpp"
#include "dispatcher/types/kernel_values.hpp"
#include "kernels/programs/device.hpp"
#include "kernels/programs/head_rows.hpp"
#include "kernels/programs/mask.hpp"

#include <cstdint>

/// The matrices in memory that a block works on: one (entry, head) of a tensor, with the extents that the
/// kernel believes in.
namespace fmha::kernels {

/// One axis of a matrix. A kernel that handles ragged extents on it (padding flag on) reads and writes
/// exactly `size` elements. Without the flag it assumes whole granules: its loads take `read` ≥ size elements
/// for granted and its stores reach only the whole granules, `written` ≤ size.
struct Extent {
    std::int64_t size = 0, read = 0, written = 0;

    FMHA_DEVICE static constexpr Extent of(std::int64_t size, std::int64_t granule) {
        return {size, (size + granule - 1) / granule * granule, size / granule * granule};
    }
    /// The blocks of `block` elements that begin within it.
    FMHA_DEVICE constexpr Extent blocks(std::int64_t block) const {
        return {(size + block - 1) / block, (read + block - 1) / block, (written + block - 1) / block};
    }
};

/// Granules of the four axes that a configuration's padding flags stand for; 1 = any extent.
struct Granules {
    std::int64_t seqlen_q = 1, seqlen_k = 1, hdim_q = 1, hdim_v = 1;

    FMHA_DEVICE static constexpr std::int64_t of_head(std::int8_t pad, std::int32_t alignment,
                                                      std::int64_t hdim) {
        return pad == 1 ? 1 : pad == 8 ? 8 : alignment > 0 ? alignment : hdim;
    }
    FMHA_DEVICE static constexpr Granules of(const KernelConfig& cfg) {
        const Algorithm& algorithm = cfg.algorithm;
        return {algorithm.pad.s ? 1 : algorithm.tile.m0, algorithm.pad.sk ? 1 : algorithm.tile.n0,
                of_head(algorithm.pad.d, algorithm.hdim_q_alignment, cfg.signature.hdim_q),
                of_head(algorithm.pad.dv, algorithm.hdim_v_alignment, cfg.signature.hdim_v)};
    }
};

/// Micro-scaling: one e8m0 scale per row_block × col_block elements; `tensor` absent = 1.
struct BlockScales {
    TensorView tensor;
    std::int64_t origin = 0;
    std::int64_t row_block = 1, col_block = 1;
};

/// How the rows of a matrix lie in pages (B-3). Row r is slot r mod 2^page_bits of page table[r div 2^page_bits]; without a
/// table all rows are slots of the page where the matrix begins. Lines of the vectorised layout are pieces of `vector`
/// elements, in a distance of their own: a slot's channels, or, `along_rows`, a channel's slots.
struct PagedRows {
    const std::int32_t* table = nullptr;
    std::int32_t page_bits = 0;
    std::int32_t vector = 1; ///< a power of two; 1: lines are not in pieces
    std::int64_t vector_stride = 0;
    bool along_rows = false;
    std::int32_t looked_up = 0; ///< where the context keeps the pages of the tile, if it looks them up ahead

    FMHA_DEVICE constexpr bool any() const { return table != nullptr || vector > 1; }
};

/// Element (r, c) lies at origin + r·row_stride + c·col_stride elements from the tensor's base, unless rows lie in pages.
struct Matrix {
    TensorView tensor;
    std::int64_t origin = 0;
    Extent rows, cols;
    BlockScales scales;
    PagedRows paged{};
    bool whole_units = false; ///< units of 16 bytes are known to be aligned, and to exist as a whole or not
    HeadRows heads{}; ///< whose rows a tile from this matrix on has; the others' lie behind by their stride

    FMHA_DEVICE constexpr std::int64_t offset(std::int64_t r, std::int64_t c) const {
        if (paged.any()) return in_pages(r, c);
        return origin + r * tensor.row_stride + c * tensor.col_stride;
    }
    /// The `count` rows from row `first` on, which begins a block of scales.
    FMHA_DEVICE constexpr Matrix from_row(std::int64_t first, std::uint32_t count) const {
        Matrix m = *this;
        m.origin += first * tensor.row_stride;
        m.scales.origin += first / scales.row_block * scales.tensor.row_stride;
        m.rows = {count, count, 0};
        return m;
    }
    /// The `count` columns from column `first` on.
    FMHA_DEVICE constexpr Matrix from_column(std::int64_t first, std::uint32_t count) const {
        Matrix m = *this;
        m.origin += first * tensor.col_stride;
        m.cols = {count, count, 0};
        return m;
    }
    /// Its block scales, one element a block.
    FMHA_DEVICE constexpr Matrix block_scales() const {
        return {
            scales.tensor, scales.origin, rows.blocks(scales.row_block), cols.blocks(scales.col_block), {}};
    }

  private:
    FMHA_DEVICE constexpr std::int64_t in_pages(std::int64_t r, std::int64_t c) const {
        std::int64_t at = origin, slot = r;
        if (paged.table != nullptr) {
            const std::int64_t page = r >> paged.page_bits;
            at += paged.table[page] * tensor.batch_stride;
            slot = r - (page << paged.page_bits);
        }
        const std::int64_t in_line = paged.along_rows ? slot : c, piece = in_line / paged.vector;
        if (paged.vector > 1) at += piece * (paged.vector_stride - paged.vector);
        return at + slot * tensor.row_stride + c * tensor.col_stride;
    }
};

/// Logical lengths of one entry and where it starts in packed tensors (section 4). In batch mode the starts
/// are 0.
struct Entry {
    std::int64_t seqlen_q = 0, seqlen_k = 0;
    std::int64_t start_q = 0, start_k = 0;

    FMHA_DEVICE static Entry of(const Shape& shape, const LengthArrays& lengths, std::int64_t b) {
        Entry entry{shape.seqlen_q, shape.seqlen_k, 0, 0};
        if (shape.mode == Mode::group) {
            entry.start_q = lengths.seqstart_q[b];
            entry.start_k = lengths.seqstart_k[b];
            entry.seqlen_q = lengths.seqstart_q[b + 1] - entry.start_q;
            entry.seqlen_k = lengths.seqstart_k[b + 1] - entry.start_k;
        }
        if (lengths.seqlen_q != nullptr) entry.seqlen_q = lengths.seqlen_q[b];
        if (lengths.seqlen_k != nullptr) entry.seqlen_k = lengths.seqlen_k[b];
        if (lengths.cu_seqlen_q != nullptr)
            entry.seqlen_q = lengths.cu_seqlen_q[b + 1] - lengths.cu_seqlen_q[b];
        if (lengths.cu_seqlen_k != nullptr)
            entry.seqlen_k = lengths.cu_seqlen_k[b + 1] - lengths.cu_seqlen_k[b];
        return entry;
    }
    /// The query side alone, for kernels that see no keys.
    FMHA_DEVICE static Entry of_queries(const Shape& shape, const LengthArrays& lengths, std::int64_t b) {
        if (shape.mode != Mode::group) return {shape.seqlen_q, 0, 0, 0};
        return {std::int64_t{lengths.seqstart_q[b + 1]} - lengths.seqstart_q[b], 0, lengths.seqstart_q[b], 0};
    }
};

/// The matrix of one (entry, head) in a tensor whose rows start at `row`. The entry is 0 in group mode as far as tensors
/// are concerned: their batch stride is.
FMHA_DEVICE constexpr Matrix matrix_of(const TensorView& tensor, std::int64_t b, std::int64_t h,
                                       std::int64_t row, Extent rows, Extent cols) {
    return {tensor, tensor.offset(b, h, row, 0), rows, cols, {}};
}

/// One tile of keys: columns of a tile of scores.
struct KeyTile {
    std::int64_t row = 0;            ///< where it begins among the rows of its matrices, a multiple of n0
    std::int64_t first = 0, end = 0; ///< its first key, and where the keys end that it may have
    std::int64_t page = 0, slot = 0; ///< where the first key lies in a cache
    std::int64_t scale_page = 0;     ///< the page whose descales its keys have (Q-3)
    /// Its matrices are its own: they have `rows` rows, which begin with it, so that `row` is 0. Else they are those of all tiles.
    bool apart = false;
    std::uint32_t rows = 0;

    /// Its rows of a matrix that has a row for every key.
    FMHA_DEVICE constexpr Matrix rows_of(const Matrix& all) const {
        return apart ? all.from_row(first, rows) : all;
    }
    /// Its columns of a matrix that has a column for every key, and where they begin there.
    FMHA_DEVICE constexpr Matrix columns_of(const Matrix& all) const {
        return apart ? all.from_column(first, rows) : all;
    }
    FMHA_DEVICE constexpr std::int64_t column() const { return apart ? 0 : first; }
};

/// The matrices of the loop over keys, where the keys of an entry lie one after another.
struct FwdMatrices {
    Matrix q, k, v, bias, randval;
    static constexpr bool looks_up = false; ///< whether finding a tile costs more than arithmetic

    /// Tile t of n0 keys.
    FMHA_DEVICE KeyTile span(std::int64_t t, std::int64_t n0) const {
        const std::int64_t key0 = t * n0;
        return {key0, key0, k.rows.read, 0, 0};
    }
    /// The same; whether it exists does not matter here.
    template <class Ctx>
    FMHA_DEVICE KeyTile tile(Ctx& ctx, const VisitedTile& visited) const {
        KeyTile out = span(visited.number, ctx.cfg().algorithm.tile.n0);
        if (visited.counted) {
            out.row = 0;
            out.apart = true;
            out.rows = visited.rows;
        }
        return out;
    }
    /// The matrices that hold a tile of keys.
    FMHA_DEVICE Matrix keys(const KeyTile& tile) const { return tile.rows_of(k); }
    FMHA_DEVICE Matrix values(const KeyTile& tile) const { return tile.rows_of(v); }

    /// The visits of `tiles`, of which the query rows of the tile from `row0` on see some whole under `mask`.
    template <class Counted>
    FMHA_DEVICE TileVisits<Counted> visits(const KeyTiles& tiles, const KernelConfig& cfg, const Mask& mask,
                                           std::int64_t row0, Counted counted) const {
        const Tile& tile = cfg.algorithm.tile;
        const auto whole =
            counted ? tiles.seen_whole(mask, row0, tile.m0, k.rows.read, tile.n0, cfg.signature.mask)
                    : KeyTiles::Range{};
        return {tiles, counted, tile.n0, k.rows.read, whole};
    }

    template <class Args>
    FMHA_DEVICE static FwdMatrices of(const KernelConfig& cfg, const Args& args, const Entry& entry,
                                      std::int64_t b, std::int64_t h, std::int64_t hk) {
        const QuantArgs& quant = args.quant;
        const Granules granules = Granules::of(cfg);
        const Extent sq = Extent::of(entry.seqlen_q, granules.seqlen_q);
        const Extent sk = Extent::of(entry.seqlen_k, granules.seqlen_k);
        const Extent dq = Extent::of(args.shape.hdim_q, granules.hdim_q);
        const Extent dv = Extent::of(args.shape.hdim_v, granules.hdim_v);
        FwdMatrices m{matrix_of(args.q, b, h, entry.start_q, sq, dq),
                      matrix_of(args.k, b, hk, entry.start_k, sk, dq),
                      matrix_of(args.v, b, hk, entry.start_k, sk, dv),
                      matrix_of(args.bias, b, h, entry.start_q, sq, sk),
                      {}};
        if constexpr (requires { args.randval; })
            m.randval = matrix_of(args.randval, b, h, entry.start_q, sq, sk);
        if (cfg.signature.qscale == QScale::mx) {
            const std::int64_t key_blocks =
                quant.block_scale_seqstart_k != nullptr ? quant.block_scale_seqstart_k[b] : 0;
            m.q.scales = {quant.q_descale, quant.q_descale.offset(b, h, entry.start_q, 0), 1, 32};
            m.k.scales = {quant.k_descale, quant.k_descale.offset(b, hk, entry.start_k, 0), 1, 32};
            m.v.scales = {quant.v_descale, quant.v_descale.offset(b, hk, key_blocks, 0), 32, 1};
        }
        return m;
    }
};

/// The matrices to be written after it, looked up only then: a GPU has no registers to spare for them before.
struct FwdResults {
    Matrix o, lse;

    template <class Args>
    FMHA_DEVICE static FwdResults of(const KernelConfig& cfg, const Args& args, const Entry& entry,
                                     std::int64_t b, std::int64_t h) {
        const Granules granules = Granules::of(cfg);
        const Extent sq = Extent::of(entry.seqlen_q, granules.seqlen_q);
        const Extent dv = Extent::of(args.shape.hdim_v, granules.hdim_v);
        return {matrix_of(args.o, b, h, entry.start_q, sq, dv),
                matrix_of(args.lse, b, h, entry.start_q, sq, {1, 1, 1})};
    }
};

/// fp32 descales of sections 15.2 to 15.5; 1 where the configuration has none.
struct Descales {
    bool per_block = false, per_page = false;
    float q = 1.0F, k = 1.0F, v = 1.0F; ///< of all elements
    /// blockscale: offset of this entry's first block; kv_blockscale and per_token_head: of the head's scales in page 0.
    std::int64_t q_origin = 0, k_origin = 0, v_origin = 0;

    FMHA_DEVICE static float read(const TensorView& tensor, std::int64_t offset) {
        return static_cast<const float*>(tensor.data)[offset];
    }
    FMHA_DEVICE static Descales of(const KernelConfig& cfg, const QuantArgs& quant, std::int64_t b,
                                   std::int64_t h, std::int64_t hk) {
        Descales out;
        if (cfg.signature.qscale == QScale::pertensor) {
            out.q = read(quant.q_descale, 0);
            out.k = read(quant.k_descale, 0);
            out.v = read(quant.v_descale, 0);
        }
        if (cfg.signature.qscale == QScale::blockscale) {
            const std::int64_t q_start =
                quant.block_scale_seqstart_q != nullptr ? quant.block_scale_seqstart_q[b] : 0;
            const std::int64_t k_start =
                quant.block_scale_seqstart_k != nullptr ? quant.block_scale_seqstart_k[b] : 0;
            out.per_block = true;
            out.q_origin = quant.q_descale.offset(b, h, q_start, 0);
            out.k_origin = quant.k_descale.offset(b, hk, k_start, 0);
            out.v_origin = quant.v_descale.offset(b, hk, k_start, 0);
        }
        if (cfg.signature.qscale == QScale::kv_blockscale) {
            out.per_page = true;
            out.q = read(quant.q_descale, 0);
            out.k_origin = quant.k_descale.offset(0, hk, 0, 0);
            out.v_origin = quant.v_descale.offset(0, hk, 0, 0);
        }
        if (cfg.signature.qscale == QScale::per_token_head) {
            out.q_origin = quant.q_descale.offset(0, h, 0, 0);
            out.k_origin = quant.k_descale.offset(0, hk, 0, 0);
            out.v = read(quant.v_descale, quant.v_descale.offset(0, hk, 0, 0));
        }
        return out;
    }
    FMHA_DEVICE float q_at(const QuantArgs& quant, std::int64_t row) const {
        return per_block ? read(quant.q_descale,
                                q_origin + row / quant.block_scale_size_q * quant.q_descale.row_stride)
                         : q;
    }
    /// Of the keys of one tile.
    FMHA_DEVICE float k_at(const QuantArgs& quant, const KeyTile& tile) const {
        return per_block  ? read(quant.k_descale,
                                 k_origin + tile.first / quant.block_scale_size_k * quant.k_descale.row_stride)
               : per_page ? read(quant.k_descale, k_origin + tile.scale_page * quant.k_descale.batch_stride)
                          : k;
    }
    /// The same of V; 1 where one factor is applied once at the end.
    FMHA_DEVICE float v_at(const QuantArgs& quant, const KeyTile& tile) const {
        return per_block  ? read(quant.v_descale,
                                 v_origin + tile.first / quant.block_scale_size_k * quant.v_descale.row_stride)
               : per_page ? read(quant.v_descale, v_origin + tile.scale_page * quant.v_descale.batch_stride)
                          : 1.0F;
    }
};

} // namespace fmha::kernels
