#pragma once

#include "dispatcher/types/kernel_config.hpp"

#include <vector>

namespace fmha::catalog::tables {

/// Remembers which companion kernels of one architecture were listed: many backward traits name the same one.
/// The key is (type, head dimension, mode, padding, determinism), a bit each.
class FirstSeen {
  public:
    /// True the first time that `config` is asked about.
    bool first(const KernelConfig& config) {
        const auto& s = config.signature;
        const auto& pad = config.algorithm.pad;
        const std::size_t flags = (s.mode == Mode::group ? 1U : 0U) | (pad.s ? 2U : 0U) |
                                  (pad.d != 0 ? 4U : 0U) | (pad.dv != 0 ? 8U : 0U) |
                                  (s.is_deterministic ? 16U : 0U);
        const std::size_t index =
            (static_cast<std::size_t>(s.hdim_q) * 16 + static_cast<std::size_t>(s.data_type)) * 32 + flags;
        if (index >= seen_.size()) seen_.resize(index + 1);
        if (seen_[index]) return false;
        seen_[index] = true;
        return true;
    }

  private:
    std::vector<bool> seen_;
};

} // namespace fmha::catalog::tables
