#include "kernels/targets/host/score_context.hpp"

#include <algorithm>

namespace fmha::host_target {

ScoreContext::ScoreContext(const KernelConfig& config, int block_rows, int block_keys)
    : RowContext(config, block_rows), line_(static_cast<std::size_t>(round_up(block_keys, panel_columns))),
      bytes_(static_cast<std::size_t>(block_rows) *
             static_cast<std::size_t>(round_up(block_keys, panel_columns))),
      random_{bytes_.get(), block_rows, block_keys, round_up(block_keys, panel_columns)} {}

void ScoreContext::begin(std::int64_t rows) {
    RowContext::begin(rows);
    random_.rows = static_cast<int>(rows);
}

void ScoreContext::add_bias(const FloatTile& scores, const kernels::Matrix& bias, std::int64_t row0,
                            std::int64_t key0) const {
    for (int r = 0; r < scores.rows && row0 + r < bias.rows.size; ++r) {
        read_block(line_.get(), random_.stride, bias, row0 + r, key0, 1, scores.cols);
        float* row = scores.row(r);
        for (int c = 0; c < scores.cols; ++c) row[c] += to_base2(line_.get()[c]);
    }
}

void ScoreContext::generate(const ByteTile& bytes, const kernels::RandomSquares& squares, std::int64_t row0,
                            std::int64_t key0) const {
    constexpr std::int64_t side = kernels::RandomSquares::side;
    for (std::int64_t i = row0 / side; i * side < row0 + bytes.rows; ++i)
        for (std::int64_t j = key0 / side; j * side < key0 + bytes.cols; ++j)
            for (int lane = 0; lane < kernels::RandomSquares::lanes; ++lane) {
                const std::int64_t column = j * side + kernels::RandomSquares::key_of(lane) - key0;
                if (column < 0 || column >= bytes.cols) continue;
                const kernels::PhiloxWords words = squares.lane_bytes(i, j, lane);
                for (int n = 0; n < kernels::RandomSquares::bytes_per_lane; ++n) {
                    const std::int64_t row = i * side + kernels::RandomSquares::row_of(lane, n) - row0;
                    if (row < 0 || row >= bytes.rows) continue;
                    bytes.row(static_cast<int>(row))[column] =
                        static_cast<std::uint8_t>(words.word[n / 4] >> static_cast<unsigned>(n % 4 * 8));
                }
            }
}

void ScoreContext::drop(const FloatTile& scores, const ByteTile& bytes, std::uint8_t threshold) const {
    for (int r = 0; r < scores.rows; ++r) {
        float* row = scores.row(r);
        const std::uint8_t* random = bytes.row(r);
        for (int c = 0; c < scores.cols; ++c) row[c] = random[c] <= threshold ? row[c] : 0.0F;
    }
}

void ScoreContext::store(const kernels::Matrix& matrix, const ByteTile& bytes, std::int64_t row0,
                         std::int64_t col0) const {
    auto* const base = static_cast<std::uint8_t*>(matrix.tensor.data);
    const auto rows = std::min<std::int64_t>(bytes.rows, matrix.rows.written - row0);
    const auto cols = std::min<std::int64_t>(bytes.cols, matrix.cols.size - col0);
    for (int r = 0; r < rows; ++r)
        for (int c = 0; c < cols; ++c) base[matrix.offset(row0 + r, col0 + c)] = bytes.row(r)[c];
}

void ScoreContext::load(const ByteTile& bytes, const kernels::Matrix& matrix, std::int64_t row0,
                        std::int64_t col0) const {
    const auto* const base = static_cast<const std::uint8_t*>(matrix.tensor.data);
    for (int r = 0; r < bytes.rows; ++r)
        for (int c = 0; c < bytes.cols; ++c) {
            const bool exists = row0 + r < matrix.rows.size && col0 + c < matrix.cols.size;
            bytes.row(r)[c] = exists ? base[matrix.offset(row0 + r, col0 + c)] : std::uint8_t{0};
        }
}

} // namespace fmha::host_target
