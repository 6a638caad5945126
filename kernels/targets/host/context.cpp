#include "kernels/targets/host/context.hpp"

#include <algorithm>

namespace fmha::host_target {
namespace {

/// Sizes of one block's tiles in floats, laid out one after another in a thread's scratch.
struct Layout {
    int m0, n0, k0, n1, k1, hdim;
    int keys, channels, hdim_stride; ///< rounded up to whole vectors or panels

    explicit Layout(const KernelConfig& config)
        : m0(config.algorithm.tile.m0), n0(config.algorithm.tile.n0), k0(config.algorithm.tile.k0),
          n1(config.algorithm.tile.n1), k1(config.algorithm.tile.k1), hdim(config.algorithm.tile.k0max),
          keys(round_up(n0, panel_columns)), channels(round_up(n1, panel_columns)),
          hdim_stride(round_up(round_up(hdim, k0), panel_columns)) {}

    std::size_t query() const { return size(m0, hdim_stride); }
    std::size_t key() const { return size(k0, keys); }
    std::size_t value() const { return size(k1, channels); }
    std::size_t scores() const { return size(m0, keys); }
    std::size_t output() const { return size(m0, channels); }
    std::size_t work() const { return size(keys + k1, std::max({k0, channels}) + panel_columns); }
    std::size_t line() const { return size(1, keys); }
    std::size_t total() const { return query() + key() + value() + scores() + output() + work() + line(); }

  private:
    static std::size_t size(int a, int b) {
        return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
    }
};

} // namespace

HostContext::HostContext(const KernelConfig& config, std::vector<TileVisit>* trace)
    : RowContext(config, config.algorithm.tile.m0), trace_(trace),
      weight_type_(element_types(config.signature.data_type, fp8_flavour(config.arch)).p), weight_unit_(1.0F),
      memory_(Layout(config).total()), bytes_(Layout(config).scores()) {
    const Layout at(config);
    float* next = memory_.get();
    const auto take = [&next](std::size_t count) {
        float* const here = next;
        next += count;
        return here;
    };
    query_ = {take(at.query()), at.m0, at.hdim_stride, at.hdim_stride};
    key_ = {take(at.key()), at.k0, at.n0};
    value_ = {take(at.value()), at.k1, at.n1};
    scores_ = {take(at.scores()), at.m0, at.n0, at.keys};
    output_ = {take(at.output()), at.m0, at.n1, at.channels};
    line_ = {take(at.line()), 1, at.n0, at.keys};
    work_ = take(at.work());
    random_ = {bytes_.get(), at.m0, at.n0, at.keys};
    weight_unit_ = 1.0F / static_cast<float>(1 << numerics_of(config).p_shift);
}

void HostContext::visit(const kernels::FwdItem& item, std::int64_t key_tile) {
    if (trace_ != nullptr && item.v_tile == 0) trace_->push_back({item.b, item.h, item.q_tile, key_tile});
}

void HostContext::begin(std::int64_t rows) {
    RowContext::begin(rows);
    query_.rows = scores_.rows = output_.rows = random_.rows = static_cast<int>(rows);
}

void HostContext::load(Panels& operand, const kernels::Matrix& matrix, std::int64_t row0, std::int64_t col0) {
    read_panels(operand, work_, matrix, row0, col0, cfg().algorithm.tile.k1, cfg().algorithm.tile.n1, false);
}

void HostContext::load_transposed(Panels& operand, const kernels::Matrix& matrix, std::int64_t row0,
                                  std::int64_t col0) {
    read_panels(operand, work_, matrix, row0, col0, cfg().algorithm.tile.k0, cfg().algorithm.tile.n0, true);
}

void HostContext::product(const FloatTile& acc, const FloatTile& a, int first, const Panels& b,
                          float factor) const {
    multiply_add(acc, a, first, b, factor);
}

void HostContext::add_bias(const FloatTile& scores, const kernels::Matrix& bias, std::int64_t row0,
                           std::int64_t key0) {
    for (int r = 0; r < scores.rows && row0 + r < bias.rows.size; ++r) {
        read_block(line_.data, line_.stride, bias, row0 + r, key0, 1, scores.cols);
        float* row = scores.row(r);
        for (int c = 0; c < scores.cols; ++c) row[c] += to_base2(line_.data[c]);
    }
}

void HostContext::generate(const ByteTile& bytes, const kernels::RandomSquares& squares, std::int64_t row0,
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

void HostContext::drop(const FloatTile& scores, const ByteTile& bytes, std::uint8_t threshold) const {
    for (int r = 0; r < scores.rows; ++r) {
        float* row = scores.row(r);
        const std::uint8_t* random = bytes.row(r);
        for (int c = 0; c < scores.cols; ++c) row[c] = random[c] <= threshold ? row[c] : 0.0F;
    }
}

FloatTile HostContext::narrow(const FloatTile& scores) const {
    if (weight_type_ == ElementType::fp32) return scores;
    const float factor = 1.0F / weight_unit_;
    for (int r = 0; r < scores.rows; ++r) {
        if (weight_type_ == ElementType::fp4)
            round_line_in_blocks(scores.row(r), scores.cols, weight_type_);
        else
            round_line(scores.row(r), scores.cols, factor, weight_type_);
    }
    return scores;
}

void HostContext::store(const kernels::Matrix& matrix, const ByteTile& bytes, std::int64_t row0,
                        std::int64_t col0) const {
    auto* const base = static_cast<std::uint8_t*>(matrix.tensor.data);
    const auto rows = std::min<std::int64_t>(bytes.rows, matrix.rows.written - row0);
    const auto cols = std::min<std::int64_t>(bytes.cols, matrix.cols.size - col0);
    for (int r = 0; r < rows; ++r)
        for (int c = 0; c < cols; ++c) base[matrix.offset(row0 + r, col0 + c)] = bytes.row(r)[c];
}

} // namespace fmha::host_target
