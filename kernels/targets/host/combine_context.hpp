#pragma once

#include "kernels/programs/fmha_fwd_splitkv_combine.hpp"
#include "kernels/targets/host/two_tiles.hpp"

#include <algorithm>
#include <numeric>

namespace fmha::host_target {

/// The block context of split-KV's combine kernel.
class CombineContext : public TwoTiles {
  public:
    static constexpr int splits_at_once = 1;

    explicit CombineContext(const KernelConfig& config)
        : TwoTiles(config, kernels::combine_rows, config.algorithm.tile.n1) {}

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
};

} // namespace fmha::host_target
