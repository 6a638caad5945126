#pragma once

#include "kernels/programs/key_loop.hpp"
#include "kernels/targets/host/convert.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "kernels/targets/host/numerics.hpp"
#include "kernels/targets/host/tile.hpp"

#include <cmath>

namespace fmha::host_target {

/// The block context of the host: a run-time configuration, dense fp32 tiles in the scratch of one thread.
/// One thread runs a whole block, so the collective operations are plain loops and there is nothing to wait
/// for. kernels/programs/README.md is the contract of every operation.
class HostContext : public kernels::Decisions {
  public:
    HostContext(const KernelConfig& config, std::vector<TileVisit>* trace);

    const KernelConfig& cfg() const { return config_; }
    void visit(const kernels::FwdItem& item, std::int64_t key_tile);

    FloatTile query() const { return query_; }
    Panels key() const { return key_; }
    Panels value() const { return value_; }
    FloatTile scores() const { return scores_; }
    FloatTile output() const { return output_; }
    ByteTile random_bytes() const { return random_; }
    /// Each call hands out another vector; a block may take four.
    Rows rows();
    /// Makes the context ready for the next block, of which only `rows` query rows exist. The tiles shrink to
    /// them: the rest of a block of the configuration would be computed and thrown away.
    void begin(std::int64_t rows);

    /// Steps of `step` that cover the part of a tile's `capacity` that lies inside `extent`.
    int steps(std::int64_t capacity, std::int64_t extent, std::int64_t step) const {
        return static_cast<int>(((extent < capacity ? extent : capacity) + step - 1) / step);
    }
    void prefetch(const Panels&, const kernels::Matrix&, std::int64_t, std::int64_t) const {}
    void commit() const {}
    void wait(int) const {}

    void load(FloatTile& tile, const kernels::Matrix& matrix, std::int64_t row0, std::int64_t col0);
    void load(Panels& operand, const kernels::Matrix& matrix, std::int64_t row0, std::int64_t col0);
    void load_transposed(Panels& operand, const kernels::Matrix& matrix, std::int64_t row0,
                         std::int64_t col0);
    void product(const FloatTile& acc, const FloatTile& a, int first, const Panels& b,
                 float factor = 1.0F) const;

    template <class F>
    void map(const FloatTile& tile, F f) const {
        for (int r = 0; r < tile.rows; ++r) {
            float* row = tile.row(r);
            for (int c = 0; c < tile.cols; ++c) row[c] = f(row[c], r, c);
        }
    }
    template <class F>
    void map_rows(const Rows& dst, const Rows& a, const Rows& b, F f) const {
        for (int r = 0; r < dst.count; ++r) dst.data[r] = f(a.data[r], b.data[r]);
    }
    void fill(const FloatTile& tile, float x) const;
    void fill(const Rows& rows, float x) const;
    void soft_cap(const FloatTile& scores, float inner, float outer) const;
    void add_bias(const FloatTile& scores, const kernels::Matrix& bias, std::int64_t row0, std::int64_t key0);
    void raise_to_row_max(const Rows& top, const Rows& shrink, const FloatTile& scores) const;
    void exp2_minus(const FloatTile& scores, const Rows& top) const;
    void scale_rows(const FloatTile& tile, const Rows& factor) const;
    void scale_rows(const Rows& rows, const Rows& factor) const;
    void add_row_sums(const Rows& total, const FloatTile& scores) const;
    float log(float x) const { return std::log(x); }

    void generate(const ByteTile& bytes, const kernels::RandomSquares& squares, std::int64_t row0,
                  std::int64_t key0) const;
    void drop(const FloatTile& scores, const ByteTile& bytes, std::uint8_t threshold) const;

    FloatTile narrow(const FloatTile& scores) const;
    float weight_unit() const { return weight_unit_; }

    void store(const kernels::Matrix& matrix, const FloatTile& tile, std::int64_t row0,
               std::int64_t col0) const;
    void store(const kernels::Matrix& matrix, const ByteTile& bytes, std::int64_t row0,
               std::int64_t col0) const;
    void store(const kernels::Matrix& matrix, const Rows& rows, std::int64_t row0) const;

  protected:
    ElementType weight_type() const { return weight_type_; }

  private:
    KernelConfig config_;
    std::vector<TileVisit>* trace_;
    ElementType weight_type_;
    float weight_unit_;
    int rows_taken_ = 0;
    Scratch<float> memory_;
    Scratch<std::uint8_t> bytes_;
    FloatTile query_, scores_, output_, line_;
    Panels key_, value_;
    ByteTile random_;
    float* work_ = nullptr;
    float* row_memory_ = nullptr;
};

} // namespace fmha::host_target
