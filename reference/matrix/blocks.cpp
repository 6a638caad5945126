#include "reference/matrix/blocks.hpp"

#include "reference/bounds.hpp"
#include "reference/matrix/lines.hpp"
#include "reference/matrix/product.hpp"

#include <algorithm>
#include <cmath>

namespace fmha::reference::matrix {
namespace {

// A chunk of scores is 512 KiB and stays in the second-level cache between the two products.
constexpr Eigen::Index rows_per_chunk = 128;
constexpr std::int64_t keys_per_block = 512;

/// D-2, from the rule's text: everything in fp32.
struct Dropout {
    int threshold;
    double rescale;
    explicit Dropout(float p_drop)
        : threshold(static_cast<int>((1.0F - p_drop) * 255.0F)), rescale(1.0F / (1.0F - p_drop)) {}
};

double sink_of(const FwdArgs& args, std::int64_t h) {
    return args.score.sink_logit != nullptr ? args.score.sink_logit[h] : -infinity;
}

} // namespace

void KeyBlock::load(const AttentionArgs& args, const EntryExtent& extent, std::int64_t hk,
                    std::int64_t first_key, std::int64_t count, bool companions) {
    first = first_key;
    k.resize(count, args.shape.hdim_q);
    v.resize(count, args.shape.hdim_v);
    load_keys(args, extent, hk, first, k);
    load_values(args, extent, hk, first, v);
    if (!companions) return;
    k_abs = k.cwiseAbs();
    k_square = k.cwiseAbs2();
    v_abs = v.cwiseAbs();
    v_square = v.cwiseAbs2();
    v_abs_total = v_abs.colwise().sum();
    v_square_total = v_square.colwise().sum();
}

RowGroup::RowGroup(const AttentionArgs& args, const EntryExtent& extent, std::int64_t hk,
                   std::span<const RowId> rows, Eigen::Index first_out, ForwardRows& out)
    : args_(args), extent_(extent), hk_(hk), rows_(rows), first_out_(first_out), out_(out),
      companions_(out.has_companions()), elementwise_(args.score.bias_type == BiasType::elementwise),
      alibi_(args.score.bias_type == BiasType::alibi) {
    const auto count = static_cast<Eigen::Index>(rows.size());
    q_.resize(count, args.shape.hdim_q);
    for (Eigen::Index r = 0; r < count; ++r) {
        const RowId& row = rows[static_cast<std::size_t>(r)];
        load_query(args, extent, row, q_.row(r));
        sees_.push_back(of_split(visible_keys(args.mask, extent, row.i), extent));
    }
    sum_ = Eigen::VectorXd::Zero(count);
    if (!companions_) return;
    zeta_sum_ = Eigen::VectorXd::Zero(count);
    zeta_value_ = Matrix::Zero(count, args.shape.hdim_v);
    beta0_ = beta_range_ = beta_gap_ = Eigen::VectorXd::Zero(alibi_ ? count : 0);
    for (Eigen::Index r = 0; r < beta0_.size(); ++r) {
        // Of all keys that the row sees, because those of all splits have the same β0.
        const RowId& row = rows[static_cast<std::size_t>(r)];
        const VisibleKeys &seen = sees_[static_cast<std::size_t>(r)],
                          all = visible_keys(args.mask, extent, row.i);
        beta0_(r) = alibi_origin(args, extent, row, all);
        beta_gap_(r) = seen.count() > 0 ? beta0_(r) - alibi_origin(args, extent, row, seen) : 0.0;
    }
}

std::int64_t RowGroup::run() {
    const auto count = static_cast<Eigen::Index>(rows_.size());
    for (std::int64_t first = 0; first < extent_.keys; first += keys_per_block) {
        const std::int64_t size = std::min(keys_per_block, extent_.keys - first);
        const auto meets = [&](const VisibleKeys& keys) {
            return (first < keys.sink_end && keys.sink_begin < first + size) ||
                   (first < keys.end && keys.first < first + size);
        };
        if (std::ranges::none_of(sees_, meets)) continue;
        keys_.load(args_, extent_, hk_, first, size, companions_);
        for (Eigen::Index row = 0; row < count; row += rows_per_chunk) {
            if (!choose_chunk(row, std::min(rows_per_chunk, count - row))) continue;
            score_chunk();
            for (Eigen::Index r = 0; r < s_.rows(); ++r) weigh_row(r);
            accumulate_chunk();
        }
    }
    std::int64_t pairs = 0;
    for (Eigen::Index row = 0; row < count; ++row) {
        finish_row(row);
        pairs += sees_[static_cast<std::size_t>(row)].count();
    }
    return pairs;
}

RowGroup::Runs RowGroup::runs_of(std::size_t row) const {
    const VisibleKeys& keys = sees_[row];
    const auto clip = [&](std::int64_t begin, std::int64_t end) {
        const std::int64_t from = std::max(begin, keys_.first);
        const std::int64_t to = std::min(end, keys_.first + keys_.size());
        return Run{from - keys_.first, std::max<std::int64_t>(0, to - from)};
    };
    return {clip(keys.sink_begin, keys.sink_end), clip(keys.first, keys.end)};
}

/// False when no row of the chunk sees a key of the block.
bool RowGroup::choose_chunk(Eigen::Index row, Eigen::Index count) {
    chunk_ = row;
    runs_.clear();
    Eigen::Index begin = keys_.size(), end = 0;
    for (Eigen::Index r = 0; r < count; ++r) {
        runs_.push_back(runs_of(static_cast<std::size_t>(row + r)));
        for (const Run& run : runs_.back()) {
            if (run.size == 0) continue;
            begin = std::min(begin, run.begin);
            end = std::max(end, run.begin + run.size);
        }
    }
    if (begin >= end) return false;
    column_ = begin;
    columns_ = end - begin;
    for (Runs& runs : runs_)
        for (Run& run : runs) run.begin = run.size > 0 ? run.begin - column_ : 0;
    return true;
}

/// F-1 to F-3 and their companions for the whole chunk.
void RowGroup::score_chunk() {
    const auto count = static_cast<Eigen::Index>(runs_.size());
    const auto q = q_.middleRows(chunk_, count);
    s_.resize(count, columns_);
    multiply_transposed(s_, q, keys_.k.middleRows(column_, columns_));
    if (const double cap = args_.score.logits_soft_cap; cap > 0.0)
        s_ = s_.unaryExpr([cap](double t) { return cap * std::tanh(t / cap); });
    if (args_.dropout.p_drop > 0.0F)
        load_random_bytes(args_, rows_.subspan(static_cast<std::size_t>(chunk_), runs_.size()), keys_.first,
                          column_ + columns_, bytes_);
    if (!companions_) return;
    a_.resize(count, columns_);
    zeta_.resize(count, columns_);
    multiply_transposed(a_, q.cwiseAbs(), keys_.k_abs.middleRows(column_, columns_));
    multiply_transposed(zeta_, q.cwiseAbs2(), keys_.k_square.middleRows(column_, columns_));
}

/// F-4 to F-9 for one row: scores become kept exponentials relative to the running maximum.
void RowGroup::weigh_row(Eigen::Index r) {
    if (args_.score.bias_type != BiasType::no_bias) {
        beta_.resize(1, columns_);
        load_bias(args_, extent_, rows_[static_cast<std::size_t>(chunk_ + r)], keys_.first + column_, beta_);
        s_.row(r) += beta_;
    }
    note_visible(r);
    double& maximum = out_.score_max(out_row(r));
    const double previous = maximum;
    maximum = std::max(maximum, row_maximum(r));
    if (companions_) {
        bound_scores(r);
        add_value_sums(r);
    }
    if (maximum > previous && previous > -infinity) rescale_row(r, std::exp(previous - maximum));
    exponentiate(r, maximum);
    sum_(chunk_ + r) += s_.row(r).sum();
    if (args_.dropout.p_drop > 0.0F) drop(r);
    if (!companions_) return;
    const double cast_square = out_.numerics.u_p * out_.numerics.u_p / 3.0;
    a_.row(r) = s_.row(r).cwiseAbs2();
    zeta_.row(r).array() *= a_.row(r).array();
    a_.row(r) = cast_square * a_.row(r) + zeta_.row(r);
    zeta_sum_(chunk_ + r) += zeta_.row(r).sum();
}

double RowGroup::row_maximum(Eigen::Index r) {
    double maximum = -infinity;
    for (const Run& run : runs_[static_cast<std::size_t>(r)])
        if (run.size > 0) maximum = std::max(maximum, s_.row(r).segment(run.begin, run.size).maxCoeff());
    return maximum;
}

void RowGroup::note_visible(Eigen::Index r) {
    const Eigen::Index row = out_row(r);
    for (const Run& run : runs_[static_cast<std::size_t>(r)]) {
        Eigen::Index begin = run.begin, end = run.begin + run.size;
        std::int64_t seen = run.size;
        if (elementwise_) {
            seen = (s_.row(r).segment(run.begin, run.size).array() > -infinity).count();
            while (begin < end && s_(r, begin) == -infinity) ++begin;
            while (begin < end && s_(r, end - 1) == -infinity) --end;
        }
        if (seen == 0) continue;
        out_.visible_keys(row) += seen;
        if (out_.first_visible(row) < 0) out_.first_visible(row) = keys_.first + column_ + begin;
        out_.last_visible(row) = keys_.first + column_ + end - 1;
    }
}

/// η and max a of B.2; leaves ζ² of B.3 in zeta_.
void RowGroup::bound_scores(Eigen::Index r) {
    const Numerics& kernel = out_.numerics;
    const double per_a = accumulation_growth(args_.shape.hdim_q + 2, kernel) + 2.0 * kernel.u_m;
    const double per_square = kernel.u_a * kernel.u_a / 6.0 * static_cast<double>(args_.shape.hdim_q) +
                              4.0 / 3.0 * kernel.u_m * kernel.u_m;
    const double per_key =
        4.0 * u32 + (args_.score.logits_soft_cap > 0.0F ? args_.score.logits_soft_cap * kernel.eps_t : 0.0);
    const double zeta_floor = u32 * u32 + kernel.eps_e * kernel.eps_e / 3.0;
    double& eta = out_.eta(out_row(r));
    double& max_a = out_.max_a(out_row(r));
    for (const Run& run : runs_[static_cast<std::size_t>(r)]) {
        if (run.size == 0) continue;
        // Keys that a bias of −∞ hides count for nothing.
        if (elementwise_)
            for (Eigen::Index c = run.begin; c < run.begin + run.size; ++c)
                if (s_(r, c) == -infinity) a_(r, c) = zeta_(r, c) = -infinity;
        const auto s = s_.row(r).segment(run.begin, run.size).array();
        const auto a = a_.row(r).segment(run.begin, run.size).array();
        auto zeta = zeta_.row(r).segment(run.begin, run.size).array();
        const auto finite_s = [&] { return (a > -infinity).select(s, 0.0); };
        max_a = std::max(max_a, a.maxCoeff());
        if (args_.score.bias_type == BiasType::no_bias) {
            eta = std::max(eta, (per_a * a + 4.0 * u32 * s.abs()).maxCoeff() + per_key);
            zeta = per_square * zeta + u32 * u32 * s.square() + zeta_floor;
            continue;
        }
        const auto beta = beta_.row(0).segment(run.begin, run.size).array();
        if (alibi_) {
            const double beta0 = beta0_(chunk_ + r);
            double& range = beta_range_(chunk_ + r);
            range = std::max(range, (beta - beta0).abs().maxCoeff());
            eta = std::max(eta, (per_a * a + 4.0 * u32 * (s - beta).abs()).maxCoeff() + per_key);
            zeta = per_square * zeta + u32 * u32 * (s - beta0).square() + zeta_floor;
            continue;
        }
        const Eigen::ArrayXXd score_part =
            4.0 * u32 * finite_s().abs() + 2.0 * u32 * (a > -infinity).select(beta, 0.0).abs();
        eta = std::max(eta, (per_a * a + score_part).maxCoeff() + per_key);
        zeta = (a > -infinity).select(per_square * zeta + u32 * u32 * finite_s().square() + zeta_floor, 0.0);
    }
}

/// Σ|v̂| and Σv̂² over the visible keys.
void RowGroup::add_value_sums(Eigen::Index r) {
    auto absolute = line_of(out_.abs_v, out_row(r));
    auto square = line_of(out_.square_v, out_row(r));
    const Runs& runs = runs_[static_cast<std::size_t>(r)];
    if (!elementwise_ && runs[1].size == keys_.size()) {
        absolute += keys_.v_abs_total;
        square += keys_.v_square_total;
        return;
    }
    for (const Run& run : runs)
        for (Eigen::Index c = run.begin; c < run.begin + run.size; ++c) {
            if (s_(r, c) == -infinity) continue;
            absolute += keys_.v_abs.row(column_ + c);
            square += keys_.v_square.row(column_ + c);
        }
}

void RowGroup::exponentiate(Eigen::Index r, double maximum) {
    Eigen::Index done = 0;
    const auto hide_until = [&](Eigen::Index end) {
        s_.row(r).segment(done, end - done).setZero();
        if (companions_) zeta_.row(r).segment(done, end - done).setZero();
    };
    for (const Run& run : runs_[static_cast<std::size_t>(r)]) {
        if (run.size == 0 || maximum == -infinity) continue;
        hide_until(run.begin);
        auto s = s_.row(r).segment(run.begin, run.size).array();
        if (elementwise_)
            s = (s > -infinity).select((s - maximum).exp(), 0.0);
        else
            s = (s - maximum).exp();
        done = run.begin + run.size;
    }
    hide_until(columns_);
}

void RowGroup::drop(Eigen::Index r) {
    const Dropout dropout(args_.dropout.p_drop);
    const auto bytes = bytes_.row(r).segment(column_, columns_).array();
    s_.row(r).array() *= (bytes.cast<int>() <= dropout.threshold).cast<double>() * dropout.rescale;
}

/// Moves the sums so far to a new maximum.
void RowGroup::rescale_row(Eigen::Index r, double factor) {
    const Eigen::Index row = out_row(r);
    sum_(chunk_ + r) *= factor;
    line_of(out_.o, row) *= factor;
    if (!companions_) return;
    const double square = factor * factor;
    line_of(out_.weighted_abs, row) *= factor;
    line_of(out_.weight_variance, row) *= square;
    zeta_value_.row(chunk_ + r) *= square;
    zeta_sum_(chunk_ + r) *= square;
}

void RowGroup::accumulate_chunk() {
    const Eigen::Index count = s_.rows();
    const auto rows = [&](auto& table) { return lines_of(table, out_row(0), count); };
    const auto keys = [&](const Matrix& values) { return values.middleRows(column_, columns_); };
    add_product(rows(out_.o), s_, keys(keys_.v));
    if (!companions_) return;
    add_product(rows(out_.weighted_abs), s_, keys(keys_.v_abs));
    add_product(rows(out_.weight_variance), a_, keys(keys_.v_square));
    add_product(zeta_value_.middleRows(chunk_, count), zeta_, keys(keys_.v));
}

/// F-6 to F-10 from the running sums, and the sink logit, which enters here and only here (K-6).
void RowGroup::finish_row(Eigen::Index r) {
    const Eigen::Index row = first_out_ + r;
    const double sink = sink_of(args_, rows_[static_cast<std::size_t>(r)].h);
    const double seen = out_.score_max(row);
    const double maximum = std::max(seen, sink);
    out_.seqlen_k(row) = extent_.end - extent_.begin;
    if (maximum == -infinity) return;
    const double shift = std::exp(seen - maximum);
    const double normaliser = sum_(r) * shift + std::exp(sink - maximum);
    const double weight = shift / normaliser;
    out_.row_max(row) = maximum;
    out_.lse(row) = maximum + std::log(normaliser);
    line_of(out_.o, row) *= weight;
    if (!companions_) return;
    out_.ell(row) = normaliser;
    if (alibi_) out_.eta(row) += alibi_error(beta_range_(r), beta_gap_(r), out_.max_a(row));
    line_of(out_.weighted_abs, row) *= weight;
    const auto o = line_of(out_.o, row).array();
    auto variance = line_of(out_.weight_variance, row).array();
    variance =
        ((variance - 2.0 * o * zeta_value_.row(r).array() + o.square() * zeta_sum_(r)) * (weight * weight))
            .max(0.0);
}

} // namespace fmha::reference::matrix
