#pragma once

#include "kernels/programs/alibi.hpp"
#include "kernels/programs/decisions.hpp"
#include "kernels/programs/hidden_keys.hpp"
#include "kernels/programs/score_unit.hpp"
#include "kernels/targets/host/convert.hpp"
#include "kernels/targets/host/tile.hpp"
#include "kernels/targets/host/vec.hpp"

#include <cmath>

namespace fmha::host_target {

/// The part of a block context that all families need: a run-time configuration, arithmetic on dense fp32 tiles and on one
/// value a row, in the scratch of one thread. One thread runs a whole block, so the collective operations are plain loops.
/// kernels/programs/README.md is the contract of every operation.
class RowContext : public kernels::Decisions {
  public:
    /// For blocks of at most `block_rows` rows.
    RowContext(const KernelConfig& config, int block_rows);

    const KernelConfig& cfg() const { return config_; }
    /// Each call hands out another vector; a block may take seven.
    Rows rows();
    /// Makes the context ready for the next block, of which only `rows` rows exist.
    void begin(std::int64_t rows);

    template <class F>
    void map(const FloatTile& tile, F f) const {
        for (int r = 0; r < tile.rows; ++r) {
            float* row = tile.row(r);
            for (int c = 0; c < tile.cols; ++c) row[c] = f(row[c], r, c);
        }
    }
    void scale_all(const FloatTile& tile, float factor) const {
        map(tile, [factor](float x, int, int) { return x * factor; });
    }
    template <class F>
    void map_rows(const Rows& dst, const Rows& a, const Rows& b, F f) const {
        for (int r = 0; r < dst.count; ++r) dst.data[r] = f(a.data[r], b.data[r]);
    }
    template <class F>
    void set_rows(const Rows& dst, F f) const {
        for (int r = 0; r < dst.count; ++r) dst.data[r] = f(r);
    }
    void add_distances(const FloatTile& scores, float factor, const kernels::TileAlibi& at) const {
        map(scores, [&](float s, int r, int c) { return s + factor * at.distance(r, c); });
    }
    void add_plane(const FloatTile& scores, float factor, const kernels::TilePlane& plane) const {
        map(scores, [&, along = plane.along(factor)](float s, int r, int c) {
            return s + along * static_cast<float>(plane.reference(r) - c);
        });
    }
    void hide(const FloatTile& scores, const kernels::HiddenKeys& hidden) const { map(scores, hidden); }
    void fill(const FloatTile& tile, float x) const;
    void fill(const Rows& rows, float x) const;
    void soft_cap(const FloatTile& scores, float inner, float outer) const;
    void raise_to_row_max(const Rows& top, const Rows& shrink, const FloatTile& scores, float slack = 0.0F,
                          float factor = 1.0F) const;
    /// References are no sums here, so that the largest score's exponent is exact.
    void raise_to_row_max(const Rows& top, const Rows& shrink, const FloatTile& scores, const Rows& reference,
                          kernels::ScoreUnit unit) const;
    void exp2_minus(const FloatTile& scores, const Rows& top) const;
    void exp2_minus(const FloatTile& scores, const Rows& top, float factor) const;
    void exp2_minus(const FloatTile& scores, const Rows& top, const Rows& reference,
                    kernels::ScoreUnit unit) const;
    float top_weight(float, kernels::ScoreUnit unit) const { return exp2(unit.shift); }
    void scale_rows(const FloatTile& tile, const Rows& factor) const;
    void scale_rows(const Rows& rows, const Rows& factor) const;
    void add_scaled(const FloatTile& acc, const FloatTile& tile, const Rows& factor) const;
    void scale_and_add(const FloatTile& acc, const Rows& factor, const FloatTile& tile) const;
    /// A row has one part.
    void split_rows(const Rows&) const {}
    void add_row_parts(const Rows& total, const FloatTile& scores) const;
    void join_rows(const Rows&) const {}
    void add_row_products(const Rows& total, const FloatTile& a, const FloatTile& b) const;
    static float again(float x) { return x; }
    static std::int64_t kept(std::int64_t x) { return x; }
    float exp2(float x) const { return host_target::exp2(x); }
    float log(float x) const { return std::log(x); }
    float quotient(float a, float b) const { return a / b; }

    void load(const FloatTile& tile, const kernels::Matrix& matrix, std::int64_t row0,
              std::int64_t col0) const;
    void load(const Rows& rows, const kernels::Matrix& matrix, std::int64_t row0) const;
    void store(const kernels::Matrix& matrix, const FloatTile& tile, std::int64_t row0,
               std::int64_t col0) const;
    void store(const kernels::Matrix& matrix, const Rows& rows, std::int64_t row0) const;
    void store_sum(float* to, const Rows& rows, float factor) const;

  private:
    KernelConfig config_;
    int stride_, rows_ = 0, rows_taken_ = 0;
    Scratch<float> memory_; ///< of row vectors
};

} // namespace fmha::host_target
