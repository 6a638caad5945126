#pragma once

#include "kernels/targets/host/row_context.hpp"

namespace fmha::host_target {

/// A block context of row operations on two tiles of the same shape.
class TwoTiles : public RowContext {
  public:
    TwoTiles(const KernelConfig& config, int block_rows, int block_cols)
        : RowContext(config, block_rows), cols_(block_cols), stride_(round_up(block_cols, panel_columns)),
          block_rows_(block_rows),
          memory_(std::size_t{2} * static_cast<std::size_t>(block_rows) * static_cast<std::size_t>(stride_)) {
    }

    FloatTile partial() const { return tile(0); }
    FloatTile output() const { return tile(1); }
    void begin(std::int64_t rows) {
        RowContext::begin(rows);
        rows_ = static_cast<int>(rows);
    }

  private:
    FloatTile tile(int index) const {
        return {memory_.get() + std::ptrdiff_t{index} * block_rows_ * stride_, rows_, cols_, stride_};
    }

    int cols_, stride_, block_rows_, rows_ = 0;
    Scratch<float> memory_;
};

} // namespace fmha::host_target
