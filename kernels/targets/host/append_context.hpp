#pragma once

#include "kernels/programs/fmha_fwd_appendkv.hpp"
#include "kernels/targets/host/row_context.hpp"

namespace fmha::host_target {

/// The block context of append-KV: tiles with a column for every pair that is rotated, and copies of bits.
class AppendContext : public RowContext {
  public:
    explicit AppendContext(const KernelConfig& config);

    FloatTile first() const { return tile(0); }
    FloatTile second() const { return tile(1); }
    FloatTile cosines() const { return tile(2); }
    FloatTile sines() const { return tile(3); }
    void begin(std::int64_t rows);

    void rotate(const FloatTile& first, const FloatTile& second, const FloatTile& cosine,
                const FloatTile& sine) const;
    void copy(const kernels::Matrix& to, std::int64_t to_row, const kernels::Matrix& from, std::int64_t row,
              std::int64_t col) const;

  private:
    FloatTile tile(int index) const;

    int block_rows_, rows_ = 0;
    Scratch<float> memory_;
};

} // namespace fmha::host_target
