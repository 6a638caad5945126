#include "kernels/targets/host/context.hpp"

#include <algorithm>

namespace fmha::host_target {
namespace {

constexpr int row_vectors = 4;

/// Sizes of one block's tiles in floats, laid out one after another in a thread's scratch.
struct Layout {
    int m0, n0, k0, n1, k1, hdim;
    int rows, keys, channels, hdim_stride; ///< rounded up to whole vectors or panels

    explicit Layout(const KernelConfig& config)
        : m0(config.algorithm.tile.m0), n0(config.algorithm.tile.n0), k0(config.algorithm.tile.k0),
          n1(config.algorithm.tile.n1), k1(config.algorithm.tile.k1), hdim(config.algorithm.tile.k0max),
          rows(round_up(m0, panel_columns)), keys(round_up(n0, panel_columns)),
          channels(round_up(n1, panel_columns)), hdim_stride(round_up(round_up(hdim, k0), panel_columns)) {}

    std::size_t query() const { return size(m0, hdim_stride); }
    std::size_t key() const { return size(k0, keys); }
    std::size_t value() const { return size(k1, channels); }
    std::size_t scores() const { return size(m0, keys); }
    std::size_t output() const { return size(m0, channels); }
    std::size_t work() const { return size(keys + k1, std::max({k0, channels}) + panel_columns); }
    std::size_t line() const { return size(1, keys); }
    std::size_t row_memory() const { return size(row_vectors, rows); }
    std::size_t total() const {
        return query() + key() + value() + scores() + output() + work() + line() + row_memory();
    }

  private:
    static std::size_t size(int a, int b) {
        return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
    }
};

} // namespace

HostContext::HostContext(const KernelConfig& config, std::vector<TileVisit>* trace)
    : config_(config), trace_(trace),
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
    row_memory_ = take(at.row_memory());
    random_ = {bytes_.get(), at.m0, at.n0, at.keys};
    weight_unit_ = 1.0F / static_cast<float>(1 << numerics_of(config).p_shift);
}

void HostContext::visit(const kernels::FwdItem& item, std::int64_t key_tile) {
    if (trace_ != nullptr && item.v_tile == 0) trace_->push_back({item.b, item.h, item.q_tile, key_tile});
}

void HostContext::begin(std::int64_t rows) {
    rows_taken_ = 0;
    query_.rows = scores_.rows = output_.rows = random_.rows = static_cast<int>(rows);
}

Rows HostContext::rows() {
    const int stride = round_up(config_.algorithm.tile.m0, panel_columns);
    return {row_memory_ + static_cast<std::ptrdiff_t>(rows_taken_++) * stride, query_.rows};
}

void HostContext::load(FloatTile& tile, const kernels::Matrix& matrix, std::int64_t row0, std::int64_t col0) {
    read_block(tile.data, tile.stride, matrix, row0, col0, tile.rows, tile.cols);
}

void HostContext::load(Panels& operand, const kernels::Matrix& matrix, std::int64_t row0, std::int64_t col0) {
    read_panels(operand, work_, matrix, row0, col0, config_.algorithm.tile.k1, config_.algorithm.tile.n1,
                false);
}

void HostContext::load_transposed(Panels& operand, const kernels::Matrix& matrix, std::int64_t row0,
                                  std::int64_t col0) {
    read_panels(operand, work_, matrix, row0, col0, config_.algorithm.tile.k0, config_.algorithm.tile.n0,
                true);
}

void HostContext::product(const FloatTile& acc, const FloatTile& a, int first, const Panels& b,
                          float factor) const {
    multiply_add(acc, a, first, b, factor);
}

void HostContext::fill(const FloatTile& tile, float x) const {
    std::fill_n(tile.data, static_cast<std::ptrdiff_t>(tile.rows) * tile.stride, x);
}

void HostContext::fill(const Rows& rows, float x) const {
    std::fill_n(rows.data, rows.count, x);
}

void HostContext::soft_cap(const FloatTile& scores, float inner, float outer) const {
    for (int r = 0; r < scores.rows; ++r)
        for (int c = 0; c < scores.cols; c += vec_lanes) {
            float* at = scores.row(r) + c;
            store_vec(at, tanh(load_vec(at) * inner) * outer);
        }
}

void HostContext::add_bias(const FloatTile& scores, const kernels::Matrix& bias, std::int64_t row0,
                           std::int64_t key0) {
    for (int r = 0; r < scores.rows && row0 + r < bias.rows.size; ++r) {
        read_block(line_.data, line_.stride, bias, row0 + r, key0, 1, scores.cols);
        float* row = scores.row(r);
        for (int c = 0; c < scores.cols; ++c) row[c] += to_base2(line_.data[c]);
    }
}

void HostContext::raise_to_row_max(const Rows& top, const Rows& shrink, const FloatTile& scores) const {
    for (int r = 0; r < scores.rows; ++r) {
        const float* row = scores.row(r);
        Vec largest = splat(top.data[r]);
        int c = 0;
        for (; c + vec_lanes <= scores.cols; c += vec_lanes) largest = max(load_vec(row + c), largest);
        float now = lane_max(largest);
        for (; c < scores.cols; ++c) now = std::max(now, row[c]);
        const float before = top.data[r];
        shrink.data[r] = now == before ? 1.0F : exp2(before - now);
        top.data[r] = now;
    }
}

void HostContext::exp2_minus(const FloatTile& scores, const Rows& top) const {
    for (int r = 0; r < scores.rows; ++r) {
        float* row = scores.row(r);
        const float reference = top.data[r] == -__builtin_inff() ? 0.0F : top.data[r];
        for (int c = 0; c < scores.cols; c += vec_lanes)
            store_vec(row + c, exp2(load_vec(row + c) - reference));
    }
}

void HostContext::scale_rows(const FloatTile& tile, const Rows& factor) const {
    for (int r = 0; r < tile.rows; ++r) {
        if (factor.data[r] == 1.0F) continue;
        float* row = tile.row(r);
        for (int c = 0; c < tile.stride; ++c) row[c] *= factor.data[r];
    }
}

void HostContext::scale_rows(const Rows& rows, const Rows& factor) const {
    for (int r = 0; r < rows.count; ++r) rows.data[r] *= factor.data[r];
}

void HostContext::add_row_sums(const Rows& total, const FloatTile& scores) const {
    for (int r = 0; r < scores.rows; ++r) {
        const float* row = scores.row(r);
        Vec sum{};
        int c = 0;
        for (; c + vec_lanes <= scores.cols; c += vec_lanes) sum += load_vec(row + c);
        float row_sum = lane_sum(sum);
        for (; c < scores.cols; ++c) row_sum += row[c];
        total.data[r] += row_sum;
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

void HostContext::store(const kernels::Matrix& matrix, const FloatTile& tile, std::int64_t row0,
                        std::int64_t col0) const {
    const auto rows = std::min<std::int64_t>(tile.rows, matrix.rows.written - row0);
    const auto cols = std::min<std::int64_t>(tile.cols, matrix.cols.written - col0);
    for (int r = 0; r < rows; ++r)
        write_line(tile.row(r), matrix.tensor, matrix.offset(row0 + r, col0), matrix.tensor.col_stride,
                   static_cast<int>(cols));
}

void HostContext::store(const kernels::Matrix& matrix, const ByteTile& bytes, std::int64_t row0,
                        std::int64_t col0) const {
    auto* const base = static_cast<std::uint8_t*>(matrix.tensor.data);
    const auto rows = std::min<std::int64_t>(bytes.rows, matrix.rows.written - row0);
    const auto cols = std::min<std::int64_t>(bytes.cols, matrix.cols.size - col0);
    for (int r = 0; r < rows; ++r)
        for (int c = 0; c < cols; ++c) base[matrix.offset(row0 + r, col0 + c)] = bytes.row(r)[c];
}

void HostContext::store(const kernels::Matrix& matrix, const Rows& rows, std::int64_t row0) const {
    const auto count = std::min<std::int64_t>(rows.count, matrix.rows.written - row0);
    write_line(rows.data, matrix.tensor, matrix.offset(row0, 0), matrix.tensor.row_stride,
               static_cast<int>(count));
}

} // namespace fmha::host_target
