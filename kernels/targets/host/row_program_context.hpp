#pragma once

#include "kernels/programs/bwd_decisions.hpp"
#include "kernels/programs/programs.hpp"
#include "kernels/targets/host/row_context.hpp"

#include <algorithm>
#include <numeric>

namespace fmha::host_target {

/// The block context of a program of row operations alone (`Program::row_tile`).
template <class Program>
class RowProgramContext : public RowContext, public kernels::BwdDecisions {
  public:
    static constexpr int splits_at_once = 1;

    explicit RowProgramContext(const KernelConfig& config)
        : RowContext(config, Program::row_tile(config).rows), extents_(Program::row_tile(config)),
          stride_(round_up(extents_.columns, panel_columns)),
          memory_(std::size_t{2} * static_cast<std::size_t>(extents_.rows) *
                  static_cast<std::size_t>(stride_)) {}

    FloatTile partial() const { return tile(0); }
    FloatTile output() const { return tile(1); }
    void begin(std::int64_t rows) {
        RowContext::begin(rows);
        rows_ = static_cast<int>(rows);
    }

    void max_over_rows(const Rows& rows) const {
        std::fill_n(rows.data, rows.count, *std::max_element(rows.data, rows.data + rows.count));
    }
    void sum_over_rows(const Rows& rows) const {
        std::fill_n(rows.data, rows.count, std::accumulate(rows.data, rows.data + rows.count, 0.0F));
    }
    void sum_over_rows(const FloatTile& tile) const {
        for (int c = 0; c < tile.cols; ++c) {
            float sum = 0.0F;
            for (int r = 0; r < tile.rows; ++r) sum += tile.row(r)[c];
            for (int r = 0; r < tile.rows; ++r) tile.row(r)[c] = sum;
        }
    }

  private:
    FloatTile tile(int index) const {
        return {memory_.get() + std::ptrdiff_t{index} * extents_.rows * stride_, rows_, extents_.columns,
                stride_};
    }

    kernels::RowTile extents_;
    int stride_, rows_ = 0;
    Scratch<float> memory_;
};

using CombineContext = RowProgramContext<kernels::Program<KernelFamily::fwd_splitkv_combine>>;
using DotDoOContext = RowProgramContext<kernels::Program<KernelFamily::bwd_dot_do_o>>;
using ConvertDqContext = RowProgramContext<kernels::Program<KernelFamily::bwd_convert_dq>>;

} // namespace fmha::host_target
