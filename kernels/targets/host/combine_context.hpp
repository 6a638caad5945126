#pragma once

#include "kernels/programs/fmha_fwd_splitkv_combine.hpp"
#include "kernels/targets/host/two_tiles.hpp"

namespace fmha::host_target {

/// The block context of split-KV's combine kernel.
class CombineContext : public TwoTiles {
  public:
    static constexpr int splits_at_once = 1;

    explicit CombineContext(const KernelConfig& config)
        : TwoTiles(config, kernels::combine_rows, config.algorithm.tile.n1) {}
};

} // namespace fmha::host_target
