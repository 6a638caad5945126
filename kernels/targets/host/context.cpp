#include "kernels/targets/host/context.hpp"

#include "kernels/programs/ws_sums.hpp"
#include "kernels/targets/stored_types.hpp"

#include <algorithm>

namespace fmha::host_target {
namespace {

/// Sizes of one block's tiles in floats, laid out one after another in a thread's scratch.
struct Layout {
    int m0, n0, k0, n1, k1, hdim;
    int keys, channels, hdim_stride; ///< rounded up to whole vectors or panels
    bool has_teams, adds_apart;

    explicit Layout(const KernelConfig& config)
        : m0(config.algorithm.tile.m0), n0(config.algorithm.tile.n0), k0(config.algorithm.tile.k0),
          n1(config.algorithm.tile.n1), k1(config.algorithm.tile.k1), hdim(config.algorithm.tile.k0max),
          keys(round_up(n0, panel_columns)), channels(round_up(n1, panel_columns)),
          hdim_stride(round_up(round_up(hdim, k0), panel_columns)),
          has_teams(config.algorithm.pipeline == Pipeline::ws),
          adds_apart(has_teams && kernels::adds_tiles_apart(config.signature.data_type)) {}

    std::size_t query() const { return size(m0, hdim_stride); }
    std::size_t key() const { return size(k0, keys); }
    std::size_t value() const { return size(k1, channels); }
    std::size_t scores() const { return size(m0, keys); }
    std::size_t output() const { return size(m0, channels); }
    std::size_t work() const { return size(keys + k1, std::max({k0, channels}) + panel_columns); }
    /// Weights of one tile of keys while the scores of the next are computed.
    std::size_t weights() const { return has_teams ? scores() : 0; }
    /// The product of one tile's values, before it joins the output.
    std::size_t addend() const { return adds_apart ? output() : 0; }
    std::size_t total() const {
        return query() + key() + value() + scores() + output() + weights() + addend() + work();
    }

  private:
    static std::size_t size(int a, int b) {
        return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
    }
};

} // namespace

HostContext::HostContext(const KernelConfig& config, std::vector<TileVisit>* trace)
    : ScoreContext(config, config.algorithm.tile.m0, config.algorithm.tile.n0), trace_(trace),
      weight_type_(targets::stored_types(config).p), weight_unit_(1.0F), memory_(Layout(config).total()) {
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
    if (at.has_teams) weights_ = {take(at.weights()), at.m0, at.n0, at.keys};
    if (at.adds_apart) addend_ = {take(at.addend()), at.m0, at.n1, at.channels};
    work_ = take(at.work());
    weight_unit_ = 1.0F / static_cast<float>(1 << numerics_of(config).p_shift);
}

void HostContext::visit(const kernels::FwdItem& item, std::int64_t key_tile) {
    if (trace_ != nullptr && item.v_tile == 0) trace_->push_back({item.b, item.h, item.q_tile, key_tile});
}

void HostContext::begin(std::int64_t rows) {
    ScoreContext::begin(rows);
    query_.rows = scores_.rows = output_.rows = weights_.rows = addend_.rows = static_cast<int>(rows);
}

void HostContext::load(Panels& operand, const kernels::Matrix& matrix, std::int64_t row0, std::int64_t col0) {
    read_panels(operand, work_, matrix, row0, col0, cfg().algorithm.tile.k1, cfg().algorithm.tile.n1,
                RowsAre::depth);
}

void HostContext::load_transposed(Panels& operand, const kernels::Matrix& matrix, std::int64_t row0,
                                  std::int64_t col0) {
    read_panels(operand, work_, matrix, row0, col0, cfg().algorithm.tile.k0, cfg().algorithm.tile.n0,
                RowsAre::columns);
}

void HostContext::product(const FloatTile& acc, const FloatTile& a, int first, const Panels& b,
                          float factor) const {
    multiply_add(acc, a, first, b, factor);
}

void HostContext::take(StreamName name) {
    TileStream& from = stream(name);
    while (from.filled.empty()) next_fills_();
    from.taken = from.filled.front();
    from.filled.pop_front();
    if (name == StreamName::query) load(query_, from.taken->matrix, from.taken->row0, from.taken->col0);
}

void HostContext::start(const FloatTile& acc, StreamName left, StreamName right) {
    (void)stream(left).tile(); // which `take` has loaded
    const auto& [matrix, row0, col0] = stream(right).tile();
    fill(acc, 0.0F);
    const Tile& tile = cfg().algorithm.tile;
    for (int step = 0; step < steps(tile.k0max, matrix.cols.read, tile.k0); ++step) {
        load_transposed(key_, matrix, row0, col0 + step * tile.k0);
        product(acc, query_, step * tile.k0, key_);
    }
}

void HostContext::start(const FloatTile& acc, const FloatTile& left, StreamName right, bool adds) {
    if (!adds) fill(acc, 0.0F);
    const auto& [matrix, row0, col0] = stream(right).tile();
    const Tile& tile = cfg().algorithm.tile;
    for (int step = 0; step < steps(tile.n0, matrix.rows.read - row0, tile.k1); ++step) {
        load(value_, matrix, row0 + step * tile.k1, col0);
        product(acc, left, step * tile.k1, value_);
    }
}

FloatTile HostContext::narrow(const FloatTile& scores, bool carried) const {
    const FloatTile& weights = weights_.data != nullptr ? weights_ : scores;
    if (weights_.data != nullptr)
        for (int r = 0; r < scores.rows; ++r) std::copy_n(scores.row(r), scores.cols, weights.row(r));
    if (weight_type_ == ElementType::fp32) return weights;
    const float factor = carried ? 1.0F : 1.0F / weight_unit_;
    for (int r = 0; r < scores.rows; ++r) {
        if (weight_type_ == ElementType::fp4)
            round_line_in_blocks(weights.row(r), scores.cols, weight_type_);
        else
            round_line(weights.row(r), scores.cols, factor, weight_type_);
    }
    return weights;
}

} // namespace fmha::host_target
