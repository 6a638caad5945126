#pragma once

#include "kernels/programs/fmha_fwd_splitkv_combine.hpp"
#include "kernels/targets/host/row_context.hpp"

namespace fmha::host_target {

/// The block context of split-KV's combine kernel: row operations on two tiles.
class CombineContext : public RowContext {
  public:
    explicit CombineContext(const KernelConfig& config)
        : RowContext(config, kernels::combine_rows),
          stride_(round_up(config.algorithm.tile.n1, panel_columns)),
          memory_(std::size_t{2} * kernels::combine_rows * static_cast<std::size_t>(stride_)) {}

    FloatTile partial() const { return tile(0); }
    FloatTile output() const { return tile(1); }
    void begin(std::int64_t rows) {
        RowContext::begin(rows);
        rows_ = static_cast<int>(rows);
    }

  private:
    FloatTile tile(int index) const {
        return {memory_.get() + std::ptrdiff_t{index} * kernels::combine_rows * stride_, rows_,
                cfg().algorithm.tile.n1, stride_};
    }

    int stride_, rows_ = 0;
    Scratch<float> memory_;
};

} // namespace fmha::host_target
