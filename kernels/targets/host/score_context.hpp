#pragma once

#include "kernels/programs/philox.hpp"
#include "kernels/targets/host/row_context.hpp"

#include <cstdint>

namespace fmha::host_target {

/// The part of a block context that programs with a tile of scores (rows × keys) need: its position bias and its random
/// bytes.
class ScoreContext : public RowContext {
  public:
    ScoreContext(const KernelConfig& config, int block_rows, int block_keys);

    ByteTile random_bytes() const { return random_; }
    /// Makes the context ready for the next block, of which only `rows` rows exist.
    void begin(std::int64_t rows);

    void add_bias(const FloatTile& scores, const kernels::Matrix& bias, std::int64_t row0,
                  std::int64_t key0) const;
    void generate(const ByteTile& bytes, const kernels::RandomSquares& squares, std::int64_t row0,
                  std::int64_t key0) const;
    void drop(const FloatTile& scores, const ByteTile& bytes, std::uint8_t threshold) const;

    using RowContext::load;
    void load(const ByteTile& bytes, const kernels::Matrix& matrix, std::int64_t row0,
              std::int64_t col0) const;
    using RowContext::store;
    void store(const kernels::Matrix& matrix, const ByteTile& bytes, std::int64_t row0,
               std::int64_t col0) const;

  private:
    Scratch<float> line_; ///< of the bias
    Scratch<std::uint8_t> bytes_;
    ByteTile random_;
};

} // namespace fmha::host_target
