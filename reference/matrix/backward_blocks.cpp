#include "reference/matrix/backward_blocks.hpp"

#include "dispatcher/system/parallel.hpp"
#include "reference/bounds.hpp"
#include "reference/matrix/pair_block.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

namespace fmha::reference {
namespace {

using matrix::Extent;
using matrix::KeyLines;
using matrix::Matrix;
using matrix::PairBlock;
using matrix::QueryLines;

constexpr double nothing = -std::numeric_limits<double>::infinity();
constexpr double u32 = 0x1p-24;
constexpr std::int64_t block = 128;

/// Lines of the result that belong to one (entry, head), at most `block` of them.
struct Share {
    std::int64_t b = 0, h = 0;
    std::vector<std::size_t> lines; ///< ascending by row or key
};

template <class Id, class Position>
std::vector<Share> shares_of(const std::vector<Id>& asked, Position position) {
    std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::size_t>> heads;
    for (std::size_t n = 0; n < asked.size(); ++n) heads[{asked[n].b, asked[n].h}].push_back(n);
    std::vector<Share> shares;
    for (auto& [head, lines] : heads) {
        std::ranges::stable_sort(lines, {}, [&](std::size_t n) { return position(asked[n]); });
        const auto count = static_cast<std::int64_t>(lines.size());
        for (std::int64_t begin = 0; begin < count; begin += block)
            shares.push_back({head.first,
                              head.second,
                              {lines.begin() + begin, lines.begin() + std::min(count, begin + block)}});
    }
    return shares;
}

std::vector<std::int64_t> consecutive(std::int64_t first, std::int64_t end) {
    std::vector<std::int64_t> out(static_cast<std::size_t>(end - first));
    std::iota(out.begin(), out.end(), first);
    return out;
}

std::vector<RowId> consecutive_rows(std::int64_t b, std::int64_t h, std::int64_t first, std::int64_t end) {
    std::vector<RowId> out;
    for (std::int64_t i = first; i < end; ++i) out.push_back({b, h, i});
    return out;
}

/// Sums of one gradient's block, and where they go.
struct Sums {
    Matrix value, magnitude, error, variance;

    Sums(Eigen::Index lines, Eigen::Index cols)
        : value(Matrix::Zero(lines, cols)), magnitude(value), error(value), variance(value) {}

    void store(GradientTable& table, const std::vector<std::size_t>& lines) const {
        for (Eigen::Index r = 0; r < value.rows(); ++r)
            for (Eigen::Index c = 0; c < value.cols(); ++c) {
                const std::size_t at =
                    table.at(static_cast<std::int64_t>(lines[static_cast<std::size_t>(r)]), c);
                table.value[at] = value(r, c);
                table.magnitude[at] = magnitude(r, c);
                table.error[at] = error(r, c);
                table.variance[at] = variance(r, c);
            }
    }
};

class MatrixForm {
  public:
    MatrixForm(const BwdArgs& args, const GradientOptions& options, Gradients& out)
        : args_(args), options_(options), out_(out), forward_(attention_of(forward_part(args))),
          group_size_(args.shape.nhead_q / args.shape.nhead_k) {}

    void rows(const Share& share) {
        const Extent extent = matrix::extent_of(forward_, share.b);
        const GradientGrowth growth = GradientGrowth::of(args_, extent.queries, extent.keys, options_);
        std::vector<RowId> asked;
        for (const std::size_t n : share.lines) asked.push_back(out_.request.rows[n]);
        const QueryLines queries(args_, forward_, extent, std::move(asked));
        const float p_undrop = 1.0F - args_.dropout.p_drop;
        for (Eigen::Index r = 0; r < queries.size(); ++r) {
            const std::size_t n = share.lines[static_cast<std::size_t>(r)];
            out_.d.value[n] = p_undrop * queries.delta(r);
            out_.d.magnitude[n] = queries.delta_abs(r);
            out_.d.error[n] = p_undrop * delta_error(growth, queries)(r);
        }
        if (!out_.request.dq && !out_.request.dbias) return;
        std::int64_t first = extent.keys, end = 0;
        for (const auto& keys : queries.sees) {
            if (keys.count() == 0) continue;
            first = std::min(first, keys.sink_end > 0 ? 0 : keys.first);
            end = std::max(end, keys.end);
        }
        const double scale = args_.score.scale_s, inflate = growth.keys + kernel().u_m;
        Sums dq(queries.size(), args_.shape.hdim_q);
        for (std::int64_t key0 = first; key0 < end; key0 += block) {
            const std::int64_t last = std::min(end, key0 + block);
            const KeyLines keys(forward_, extent, share.h / group_size_, consecutive(key0, last));
            const PairBlock pairs(args_, forward_, extent, kernel(), growth, queries, keys);
            pairs_ += pairs.visible;
            const Matrix k_abs = std::abs(scale) * keys.k.cwiseAbs();
            if (out_.request.dq) {
                dq.value += scale * (pairs.ds.matrix() * keys.k);
                dq.magnitude += pairs.magnitude.matrix() * k_abs;
                dq.error += ((1.0 + inflate) * pairs.e_c + inflate * pairs.ds.abs()).matrix() * k_abs;
                dq.variance += pairs.ds_variance.matrix() * k_abs.cwiseAbs2();
            }
            if (!out_.request.dbias) continue;
            for (Eigen::Index r = 0; r < queries.size(); ++r)
                for (Eigen::Index n = 0; n < keys.size(); ++n) {
                    const std::size_t at = out_.dbias.at(
                        static_cast<std::int64_t>(share.lines[static_cast<std::size_t>(r)]), key0 + n);
                    out_.dbias.value[at] = pairs.ds(r, n);
                    out_.dbias.magnitude[at] = pairs.magnitude(r, n);
                    out_.dbias.error[at] = pairs.e_ds(r, n);
                }
        }
        if (out_.request.dq) dq.store(out_.dq, share.lines);
    }

    void keys(const Share& share) {
        const Extent extent = matrix::extent_of(forward_, share.b);
        const GradientGrowth growth = GradientGrowth::of(args_, extent.queries, extent.keys, options_);
        std::vector<std::int64_t> asked;
        for (const std::size_t n : share.lines) asked.push_back(out_.request.keys[n].j);
        const KeyLines keys(forward_, extent, share.h / group_size_, std::move(asked));
        const double inflate = growth.rows + kernel().u_m;
        Sums dk(keys.size(), args_.shape.hdim_q), dv(keys.size(), args_.shape.hdim_v);
        for (std::int64_t row0 = 0; row0 < extent.queries; row0 += block) {
            const std::int64_t last = std::min(extent.queries, row0 + block);
            const QueryLines queries(args_, forward_, extent, consecutive_rows(share.b, share.h, row0, last));
            const PairBlock pairs(args_, forward_, extent, kernel(), growth, queries, keys);
            pairs_ += pairs.visible;
            const Matrix q_abs = queries.q.cwiseAbs(), d_o_abs = queries.d_o.cwiseAbs(); // Q has scale_s
            dk.value += pairs.ds.matrix().transpose() * queries.q;
            dk.magnitude += pairs.magnitude.matrix().transpose() * q_abs;
            dk.error += ((1.0 + inflate) * pairs.e_c + inflate * pairs.ds.abs()).matrix().transpose() * q_abs;
            dk.variance += pairs.ds_variance.matrix().transpose() * q_abs.cwiseAbs2();
            dv.value += pairs.kept_p.matrix().transpose() * queries.d_o;
            dv.magnitude += pairs.kept_p_magnitude.matrix().transpose() * d_o_abs;
            dv.error += (pairs.e_kept_p + growth.rows * pairs.kept_p).matrix().transpose() * d_o_abs;
            dv.variance += pairs.kept_p_variance.matrix().transpose() * d_o_abs.cwiseAbs2();
        }
        dk.store(out_.dk, share.lines);
        dv.store(out_.dv, share.lines);
    }

    void sink(std::int64_t h) {
        const float* logits = args_.score.sink_logit;
        if (logits == nullptr || logits[h] == nothing) return;
        const double logit = logits[h];
        double value = 0.0, magnitude = 0.0, error = 0.0, total = 0.0;
        std::int64_t rows = 0;
        for (std::int64_t b = 0; b < args_.shape.batch; ++b) {
            const Extent extent = matrix::extent_of(forward_, b);
            const GradientGrowth growth = GradientGrowth::of(args_, extent.queries, extent.keys, options_);
            rows += extent.queries;
            for (std::int64_t row0 = 0; row0 < extent.queries; row0 += block) {
                const std::int64_t last = std::min(extent.queries, row0 + block);
                const QueryLines queries(args_, forward_, extent, consecutive_rows(b, h, row0, last));
                const Eigen::ArrayXd share = (logit - queries.lse).exp();
                const Eigen::ArrayXd size = queries.lse.abs() + (std::abs(logit) + 1.0);
                const Eigen::ArrayXd weighted = share * queries.delta.abs();
                value -= (share * queries.delta).sum();
                magnitude += (share * queries.delta_abs * (1.0 + size / 8.0)).sum();
                error +=
                    (share * delta_error(growth, queries) + weighted * (4.0 * u32 * size + kernel().eps_e) +
                     0x1p-126 * queries.delta.abs() + 0x1p-149)
                        .sum();
                total += weighted.sum();
            }
        }
        const auto at = static_cast<std::size_t>(h);
        out_.d_sink.value[at] = value;
        out_.d_sink.magnitude[at] = magnitude;
        out_.d_sink.error[at] = error + accumulation_growth(rows, kernel()) * total;
    }

    std::int64_t pairs() const { return pairs_; }

  private:
    const Numerics& kernel() const { return options_.numerics; }
    static Eigen::ArrayXd delta_error(const GradientGrowth& growth, const QueryLines& queries) {
        return growth.delta * queries.delta_abs + 2.0 * u32 * queries.delta.abs();
    }

    const BwdArgs& args_;
    const GradientOptions& options_;
    Gradients& out_;
    AttentionArgs forward_;
    std::int64_t group_size_;
    std::atomic<std::int64_t> pairs_{0};
};

} // namespace

Gradients backward_in_matrix_form(const BwdArgs& args, const GradientRequest& request,
                                  const GradientOptions& options) {
    Gradients out = empty_gradients(args, request, options);
    MatrixForm form(args, options, out);
    const auto row_shares = shares_of(request.rows, [](const RowId& row) { return row.i; });
    const auto key_shares = shares_of(request.keys, [](const KeyId& key) { return key.j; });
    system::parallel_for(
        row_shares.size(), [&](std::size_t n) { form.rows(row_shares[n]); }, options.threads);
    system::parallel_for(
        key_shares.size(), [&](std::size_t n) { form.keys(key_shares[n]); }, options.threads);
    system::parallel_for(
        out.d_sink.lines, [&](std::int64_t h) { form.sink(h); }, options.threads);
    out.pairs_evaluated = form.pairs();
    return out;
}

} // namespace fmha::reference
