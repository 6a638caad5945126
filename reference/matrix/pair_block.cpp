#include "reference/matrix/pair_block.hpp"

#include "reference/bounds.hpp"
#include "reference/matrix/product.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace fmha::reference::matrix {
namespace {

constexpr std::int64_t square = 32;

/// First column and number of columns of the keys that a row sees; `keys` ascend.
std::array<std::pair<Eigen::Index, Eigen::Index>, 2> columns_seen(const VisibleKeys& range,
                                                                  const std::vector<std::int64_t>& keys) {
    const auto column = [&](std::int64_t j) {
        return static_cast<Eigen::Index>(std::ranges::lower_bound(keys, j) - keys.begin());
    };
    const Eigen::Index sinks = column(range.sink_end), first = std::max(sinks, column(range.first));
    return {{{0, sinks}, {first, std::max<Eigen::Index>(0, column(range.end) - first)}}};
}

} // namespace

QueryLines::QueryLines(const BwdArgs& args, const AttentionArgs& forward, const EntryExtent& extent,
                       std::vector<RowId> which)
    : rows(std::move(which)) {
    const auto count = static_cast<Eigen::Index>(rows.size());
    q.resize(count, args.shape.hdim_q);
    d_o.resize(count, args.shape.hdim_v);
    Matrix o(count, args.shape.hdim_v), column(count, 1);
    beta0 = Eigen::ArrayXd::Zero(count);
    for (Eigen::Index r = 0; r < count; ++r) {
        const RowId& row = rows[static_cast<std::size_t>(r)];
        const std::int64_t at = extent.first_q + row.i;
        load_query(forward, extent, row, q.middleRows(r, 1));
        decode_block(args.d_o, row.b, row.h, at, 0, d_o.middleRows(r, 1));
        decode_block(args.o, row.b, row.h, at, 0, o.middleRows(r, 1));
        decode_block(args.lse, row.b, row.h, at, 0, column.middleRows(r, 1));
        sees.push_back(visible_keys(args.mask, extent, row.i));
        if (args.score.bias_type == BiasType::alibi)
            beta0(r) = alibi_origin(forward, extent, row, sees.back());
    }
    lse = column.col(0).array();
    delta = d_o.cwiseProduct(o).rowwise().sum().array();
    delta_abs = d_o.cwiseProduct(o).cwiseAbs().rowwise().sum().array();
}

KeyLines::KeyLines(const AttentionArgs& forward, const EntryExtent& extent, std::int64_t hk,
                   std::vector<std::int64_t> which)
    : keys(std::move(which)) {
    const auto count = static_cast<Eigen::Index>(keys.size());
    k.resize(count, forward.shape.hdim_q);
    v.resize(count, forward.shape.hdim_v);
    // Runs of consecutive keys are decoded together.
    for (Eigen::Index begin = 0, end = 0; begin < count; begin = end) {
        const auto key = [&](Eigen::Index n) { return keys[static_cast<std::size_t>(n)]; };
        for (end = begin + 1; end < count && key(end) == key(end - 1) + 1;) ++end;
        load_keys(forward, extent, hk, key(begin), k.middleRows(begin, end - begin));
        load_values(forward, extent, hk, key(begin), v.middleRows(begin, end - begin));
    }
}

PairBlock::PairBlock(const BwdArgs& args, const AttentionArgs& forward, const EntryExtent& extent,
                     const QueryLines& queries, const KeyLines& keys)
    : queries_(queries), keys_(keys), has_alibi_(args.score.bias_type == BiasType::alibi),
      s_(queries.size(), keys.size()), p_(Array::Zero(queries.size(), keys.size())),
      dp_(queries.size(), keys.size()) {
    multiply_transposed(s_.matrix(), queries.q, keys.k);
    const bool has_bias = args.score.bias_type != BiasType::no_bias;
    if (has_bias) {
        beta_ = bias_of(args, forward, extent);
        s_ += beta_;
    }
    for (Eigen::Index r = 0; r < queries.size(); ++r)
        for (const auto& [first, count] :
             columns_seen(queries.sees[static_cast<std::size_t>(r)], keys.keys)) {
            const auto s = s_.row(r).segment(first, count);
            visible += has_bias ? (s > -infinity).count() : count;
            if (!(queries.lse(r) > -infinity)) continue;
            p_.row(r).segment(first, count) = (s - queries.lse(r)).exp();
            // A vectorised exp of -inf is not 0.
            if (has_bias)
                p_.row(r).segment(first, count) =
                    (s > -infinity).select(p_.row(r).segment(first, count), 0.0);
        }
    multiply_transposed(dp_.matrix(), queries.d_o, keys.v);
    const auto delta = queries.delta.replicate(1, keys.size());
    if (args.dropout.p_drop > 0.0F) {
        kept_ = kept_of(args, forward, extent);
        kept_p = p_ * kept_;
        ds = p_ * (kept_ * dp_ - delta);
    } else {
        kept_p = p_;
        ds = p_ * (dp_ - delta);
    }
}

void PairBlock::add_companions(const Numerics& kernel, const GradientGrowth& growth) {
    const Eigen::Index rows = queries_.size(), cols = keys_.size();
    const auto by_row = [&](const Eigen::ArrayXd& column) { return column.replicate(1, cols); };
    const Array beta = beta_.size() > 0 ? beta_ : Array::Zero(rows, cols);
    const Array kept = kept_.size() > 0 ? kept_ : Array::Ones(rows, cols);
    Array a(rows, cols), dp_abs(rows, cols);
    multiply_transposed(a.matrix(), queries_.q.cwiseAbs(), keys_.k.cwiseAbs());
    multiply_transposed(dp_abs.matrix(), queries_.d_o.cwiseAbs(), keys_.v.cwiseAbs());
    const Array &p = p_, &s = s_, &dp = dp_;
    const Array delta = by_row(queries_.delta);

    Array seen = Array::Zero(rows, cols);
    for (Eigen::Index r = 0; r < rows; ++r)
        for (const auto& [first, count] :
             columns_seen(queries_.sees[static_cast<std::size_t>(r)], keys_.keys))
            seen.row(r).segment(first, count) = (s.row(r).segment(first, count) > -infinity).cast<double>();
    const Eigen::ArrayXd normalised = (queries_.lse > -infinity).cast<double>();
    const Eigen::ArrayXd lse = (queries_.lse > -infinity).select(queries_.lse, 0.0);
    const Array live = seen * by_row(normalised);
    const Array score = (seen > 0.0).select(s, 0.0);

    // Relative to β0 with ALiBi, which is 0 otherwise.
    const Array bias = (live > 0.0).select(beta - by_row(queries_.beta0), 0.0);
    const Array dot = (live > 0.0).select(s - beta, 0.0);
    const Array top = live * by_row(lse - queries_.beta0), logit = dot + bias;
    const Array reach = (has_alibi_ ? dot : logit).abs() + top.abs() + live;
    const Array exponent =
        live * growth.score * a + 4.0 * u32 * reach + (has_alibi_ ? 6.0 : 2.0) * u32 * bias.abs();
    const auto grown = [](const Array& x) { return x.unaryExpr([](double y) { return std::expm1(y); }); };
    const Array rounding =
        u32 * (2.5 * dot.abs() + 1.5 * bias.abs() + logit.abs() + 1.5 * top.abs() + (logit - top).abs());
    Array e_p = grown(exponent) + kernel.eps_e;
    if (kernel.u_p == 0.0) { // as often as an exponent is rounded, for every E
        const Array least = 8.0 * (grown(rounding) + kernel.eps_e);
        e_p = (live > 0.0).select(e_p.max(least), e_p);
    }
    const Array zeta = live * (growth.score / 8.0) * a + rounding + kernel.eps_e;
    const Array loss = 1.0 + live * (a + (score.abs() + by_row(lse.abs())) / 8.0);
    const Array terms = kept * dp_abs + by_row(queries_.delta_abs);
    const Array parts = kept * dp.abs() + delta.abs();
    magnitude = p * terms * loss;
    kept_p_magnitude = kept_p * loss;
    const Array underflow = growth.flush * parts + growth.subnormal;
    e_ds = seen * (p * (growth.inner * terms + 2.0 * kernel.u_m * kept * dp_abs + 4.0 * u32 * parts) +
                   (e_p + 8.0 * u32) * ds.abs() + underflow);
    // The error of a small value, whose step is fixed or which is lost whole below the floor, is not half of this on the average.
    const auto cast_variance = [&](const Array& x) -> Array {
        const double fixed = 2.0 * growth.cast_step * growth.cast_step;
        return (x.abs() < growth.cast_floor)
            .select(2.0 * x.square(), (kernel.u_p * x).square().max(fixed) / 3.0);
    };
    ds_variance = seen * (cast_variance(ds) + (p * terms * (growth.inner / 8.0)).square() +
                          (zeta * ds).square() + underflow.square());
    kept_p_variance = seen * (cast_variance(kept_p) + (zeta * kept_p).square());
    e_c = seen * (e_ds + kernel.u_p * (ds.abs() + e_ds) + growth.cast_floor);
    e_kept_p = seen * (kept_p * (e_p + kernel.u_p + kernel.u_m + 8.0 * u32) + growth.cast_floor);
}

PairBlock::Array PairBlock::bias_of(const BwdArgs& args, const AttentionArgs& forward,
                                    const EntryExtent& extent) const {
    const QueryLines& queries = queries_;
    const KeyLines& keys = keys_;
    Array out = Array::Zero(queries.size(), keys.size());
    if (args.score.bias_type == BiasType::no_bias || keys.size() == 0) return out;
    const std::int64_t first = keys.keys.front();
    Matrix line(1, keys.keys.back() - first + 1);
    for (Eigen::Index r = 0; r < queries.size(); ++r) {
        load_bias(forward, extent, queries.rows[static_cast<std::size_t>(r)], first, line);
        for (Eigen::Index n = 0; n < keys.size(); ++n)
            out(r, n) = line(0, keys.keys[static_cast<std::size_t>(n)] - first);
    }
    return out;
}

PairBlock::Array PairBlock::kept_of(const BwdArgs& args, const AttentionArgs& forward,
                                    const EntryExtent& extent) const {
    const QueryLines& queries = queries_;
    const KeyLines& keys = keys_;
    Array out = Array::Ones(queries.size(), keys.size());
    if (keys.size() == 0) return out;
    const float p_undrop = 1.0F - args.dropout.p_drop;
    const double rescale = 1.0F / p_undrop, threshold = std::floor(p_undrop * 255.0F);
    if (args.randval.present()) {
        for (Eigen::Index r = 0; r < queries.size(); ++r) {
            const RowId& row = queries.rows[static_cast<std::size_t>(r)];
            for (Eigen::Index n = 0; n < keys.size(); ++n)
                out(r, n) = decode_element(args.randval, row.b, row.h, extent.first_q + row.i,
                                           keys.keys[static_cast<std::size_t>(n)]);
        }
    } else {
        const std::int64_t first = keys.keys.front() / square * square;
        Bytes bytes;
        load_random_bytes(forward, queries.rows, first, keys.keys.back() + 1 - first, bytes);
        for (Eigen::Index r = 0; r < queries.size(); ++r)
            for (Eigen::Index n = 0; n < keys.size(); ++n)
                out(r, n) = bytes(r, keys.keys[static_cast<std::size_t>(n)] - first);
    }
    return (out <= threshold).select(Array::Constant(out.rows(), out.cols(), rescale), 0.0);
}

} // namespace fmha::reference::matrix
