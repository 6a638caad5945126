#include "reference/matrix/backward_blocks.hpp"

#include "dispatcher/system/parallel.hpp"
#include "reference/bounds.hpp"
#include "reference/matrix/pair_block.hpp"
#include "reference/matrix/product.hpp"

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

using matrix::EntryExtent;
using matrix::KeyLines;
using matrix::Matrix;
using matrix::PairBlock;
using matrix::QueryLines;

constexpr std::int64_t block = 128;

/// Lines of the result that belong to one (entry, head), at most `block` of them.
struct Share {
    std::int64_t b = 0, h = 0;
    std::vector<std::size_t> lines; ///< ascending by row or key
};

/// Lines by (entry, head), at most `most` together.
template <class Id, class Position>
std::vector<Share> shares_of(const std::vector<Id>& asked, std::int64_t most, Position position) {
    std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::size_t>> heads;
    for (std::size_t n = 0; n < asked.size(); ++n) heads[{asked[n].b, asked[n].h}].push_back(n);
    std::vector<Share> shares;
    for (auto& [head, lines] : heads) {
        std::ranges::stable_sort(lines, {}, [&](std::size_t n) { return position(asked[n]); });
        const auto count = static_cast<std::int64_t>(lines.size());
        for (std::int64_t begin = 0; begin < count;) {
            const std::int64_t end = most < count - begin ? begin + most : count;
            shares.push_back({head.first, head.second, {lines.begin() + begin, lines.begin() + end}});
            begin = end;
        }
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

/// Sums of one gradient's lines.
struct Sums {
    Matrix value, magnitude, error, variance; ///< all but the first without rows when there are no companions

    Sums(Eigen::Index lines, Eigen::Index cols, bool companions) : value(Matrix::Zero(lines, cols)) {
        if (companions) magnitude = error = variance = value;
    }

    /// Lines of the sums are `lines` of the table.
    void store(GradientTable& table, const std::vector<std::size_t>& lines) const {
        const auto copy = [&](const Matrix& from, std::vector<double>& to) {
            for (Eigen::Index r = 0; r < from.rows(); ++r)
                for (Eigen::Index c = 0; c < from.cols(); ++c)
                    to[table.at(static_cast<std::int64_t>(lines[static_cast<std::size_t>(r)]), c)] =
                        from(r, c);
        };
        copy(value, table.value);
        copy(magnitude, table.magnitude);
        copy(error, table.error);
        copy(variance, table.variance);
    }
};

/// dK and dV of some keys.
struct KeySums {
    Sums dk, dv;

    KeySums(Eigen::Index keys, const Shape& shape, bool companions)
        : dk(keys, shape.hdim_q, companions), dv(keys, shape.hdim_v, companions) {}
};

/// Doubles of dK and dV up to which all gradients of a head come from one walk over its pairs.
constexpr std::int64_t most_of_one_walk = 1 << 20;

class MatrixForm {
  public:
    MatrixForm(const BwdArgs& args, const GradientOptions& options, Gradients& out)
        : args_(args), options_(options), out_(out), forward_(attention_of(forward_part(args))),
          group_size_(args.shape.nhead_q / args.shape.nhead_k),
          heads_of_keys_(args.reduce_dk_dv ? group_size_ : 1) {}

    /// D, dQ and dBias of rows of one head.
    void rows(const Share& share) {
        const EntryExtent extent = matrix::entry_extent(forward_, share.b);
        std::vector<RowId> asked;
        for (const std::size_t n : share.lines) asked.push_back(out_.request.rows[n]);
        walk(share, QueryLines(args_, forward_, extent, std::move(asked)), extent, nullptr);
    }

    /// dK and dV of keys of one head.
    void keys(const Share& share) {
        const EntryExtent extent = matrix::entry_extent(forward_, share.b);
        const GradientGrowth growth = growth_of(extent);
        std::vector<std::int64_t> asked;
        for (const std::size_t n : share.lines) asked.push_back(out_.request.keys[n].j);
        const KeyLines keys(forward_, extent, kv_head(share.h), std::move(asked));
        KeySums sums(keys.size(), args_.shape, options_.companions);
        for (std::int64_t h = share.h * heads_of_keys_; h < (share.h + 1) * heads_of_keys_; ++h)
            for (std::int64_t row0 = 0; row0 < extent.queries; row0 += block) {
                const std::int64_t last = std::min(extent.queries, row0 + block);
                const QueryLines queries(args_, forward_, extent, consecutive_rows(share.b, h, row0, last));
                PairBlock pairs(args_, forward_, extent, queries, keys);
                if (options_.companions) pairs.add_companions(kernel(), growth);
                pairs_ += pairs.visible;
                add_keys(sums, 0, queries, pairs, growth);
            }
        store(sums, share.lines);
    }

    /// All gradients of one head of dK and dV, which are asked for whole: `keys` are those of the head, `rows` those of its
    /// query heads.
    void head(const Share& keys, const std::vector<Share>& rows) {
        const EntryExtent extent = matrix::entry_extent(forward_, keys.b);
        KeySums sums(static_cast<Eigen::Index>(keys.lines.size()), args_.shape, options_.companions);
        for (const Share& share : rows) {
            std::vector<RowId> asked;
            for (const std::size_t n : share.lines) asked.push_back(out_.request.rows[n]);
            walk(share, QueryLines(args_, forward_, extent, std::move(asked)), extent, &sums);
        }
        store(sums, keys.lines);
    }

    /// Whether `head` may do it: every row and key once, and sums that fit a cache of some size.
    bool is_whole(const Share& keys, const std::vector<Share>& rows) const {
        const EntryExtent extent = matrix::entry_extent(forward_, keys.b);
        const auto all = [](std::int64_t count, std::vector<std::int64_t> positions) {
            std::ranges::sort(positions);
            return positions == consecutive(0, count);
        };
        if (!out_.request.dq || extent.keys * (args_.shape.hdim_q + args_.shape.hdim_v) > most_of_one_walk)
            return false;
        std::vector<std::int64_t> asked;
        for (const std::size_t n : keys.lines) asked.push_back(out_.request.keys[n].j);
        if (!all(extent.keys, std::move(asked))) return false;
        std::vector<std::int64_t> of_rows;
        for (const Share& share : rows)
            for (const std::size_t n : share.lines) {
                const RowId& row = out_.request.rows[n];
                of_rows.push_back(row.h % heads_of_keys_ * extent.queries + row.i);
            }
        return all(heads_of_keys_ * extent.queries, std::move(of_rows));
    }

    /// The head of dK and dV to which query head h adds.
    std::int64_t key_gradient_head(std::int64_t h) const { return h / heads_of_keys_; }

    void sink(std::int64_t h) {
        const float* logits = args_.score.sink_logit;
        if (logits == nullptr || logits[h] == -infinity) return;
        const double logit = logits[h];
        double value = 0.0, magnitude = 0.0, error = 0.0, total = 0.0;
        std::int64_t rows = 0;
        for (std::int64_t b = 0; b < args_.shape.batch; ++b) {
            const EntryExtent extent = matrix::entry_extent(forward_, b);
            const GradientGrowth growth = growth_of(extent);
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
                     least_exponential * queries.delta.abs() + 0x1p-149)
                        .sum();
                total += weighted.sum();
            }
        }
        const auto at = static_cast<std::size_t>(h);
        out_.d_sink.value[at] = value;
        if (!options_.companions) return;
        out_.d_sink.magnitude[at] = magnitude;
        out_.d_sink.error[at] = error + accumulation_growth(rows, kernel()) * total;
    }

    std::int64_t pairs() const { return pairs_; }

  private:
    const Numerics& kernel() const { return options_.numerics; }
    GradientGrowth growth_of(const EntryExtent& extent) const {
        return GradientGrowth::of(args_, extent.queries, extent.keys, options_);
    }
    /// Of a head of dK and dV.
    std::int64_t kv_head(std::int64_t h) const { return h * heads_of_keys_ / group_size_; }

    /// D, dQ and dBias of some rows, and with `sums` their part in dK and dV of all keys.
    void walk(const Share& share, const QueryLines& queries, const EntryExtent& extent, KeySums* sums) {
        const GradientGrowth growth = growth_of(extent);
        store_d(share, queries, growth);
        if (!out_.request.dq && !out_.request.dbias) return;
        std::int64_t first = extent.keys, end = 0;
        for (const auto& keys : queries.sees) {
            if (keys.count() == 0) continue;
            first = std::min(first, keys.sink_end > 0 ? 0 : keys.first);
            end = std::max(end, keys.end);
        }
        Sums dq(queries.size(), args_.shape.hdim_q, options_.companions);
        for (std::int64_t key0 = first; key0 < end; key0 += block) {
            const std::int64_t last = std::min(end, key0 + block);
            const KeyLines keys(forward_, extent, share.h / group_size_, consecutive(key0, last));
            PairBlock pairs(args_, forward_, extent, queries, keys);
            if (options_.companions) pairs.add_companions(kernel(), growth);
            pairs_ += sums != nullptr ? 2 * pairs.visible : pairs.visible;
            if (out_.request.dq) add_rows(dq, keys, pairs, growth);
            if (out_.request.dbias) store_dbias(share, key0, pairs);
            if (sums != nullptr) add_keys(*sums, key0, queries, pairs, growth);
        }
        dq.value *= args_.score.scale_s;
        if (out_.request.dq) dq.store(out_.dq, share.lines);
    }

    void store_d(const Share& share, const QueryLines& queries, const GradientGrowth& growth) {
        const float p_undrop = 1.0F - args_.dropout.p_drop;
        for (Eigen::Index r = 0; r < queries.size(); ++r) {
            const std::size_t n = share.lines[static_cast<std::size_t>(r)];
            out_.d.value[n] = p_undrop * queries.delta(r);
            if (!options_.companions) continue;
            out_.d.magnitude[n] = queries.delta_abs(r);
            out_.d.error[n] = p_undrop * delta_error(growth, queries)(r);
        }
    }
    void store_dbias(const Share& share, std::int64_t key0, const PairBlock& pairs) {
        for (Eigen::Index r = 0; r < pairs.ds.rows(); ++r)
            for (Eigen::Index n = 0; n < pairs.ds.cols(); ++n) {
                const std::size_t at = out_.dbias.at(
                    static_cast<std::int64_t>(share.lines[static_cast<std::size_t>(r)]), key0 + n);
                out_.dbias.value[at] = pairs.ds(r, n);
                if (!options_.companions) continue;
                out_.dbias.magnitude[at] = pairs.magnitude(r, n);
                out_.dbias.error[at] = pairs.e_ds(r, n);
            }
    }
    /// Without scale_s.
    void add_rows(Sums& dq, const KeyLines& keys, const PairBlock& pairs,
                  const GradientGrowth& growth) const {
        matrix::add_product(dq.value, pairs.ds.matrix(), keys.k);
        if (!options_.companions) return;
        const double inflate = growth.keys + kernel().u_m;
        const Matrix k_abs = std::abs(args_.score.scale_s) * keys.k.cwiseAbs();
        matrix::add_product(dq.magnitude, pairs.magnitude.matrix(), k_abs);
        matrix::add_product(dq.error, ((1.0 + inflate) * pairs.e_c + inflate * pairs.ds.abs()).matrix(),
                            k_abs);
        matrix::add_product(dq.variance, pairs.ds_variance.matrix(), k_abs.cwiseAbs2());
    }
    /// Adds the part of some rows to the keys from line `at` of the sums on; Q has scale_s.
    void add_keys(KeySums& sums, Eigen::Index at, const QueryLines& queries, const PairBlock& pairs,
                  const GradientGrowth& growth) const {
        const Eigen::Index count = pairs.ds.cols();
        Sums &dk = sums.dk, &dv = sums.dv;
        matrix::add_transposed_product(dk.value.middleRows(at, count), pairs.ds.matrix(), queries.q);
        matrix::add_transposed_product(dv.value.middleRows(at, count), pairs.kept_p.matrix(), queries.d_o);
        if (!options_.companions) return;
        const double inflate = growth.rows + kernel().u_m;
        const Matrix q_abs = queries.q.cwiseAbs(), d_o_abs = queries.d_o.cwiseAbs();
        const auto add = [&](Matrix& to, const auto& pair_values, const Matrix& lines) {
            matrix::add_transposed_product(to.middleRows(at, count), pair_values.matrix(), lines);
        };
        add(dk.magnitude, pairs.magnitude, q_abs);
        add(dk.error, PairBlock::Array((1.0 + inflate) * pairs.e_c + inflate * pairs.ds.abs()), q_abs);
        add(dk.variance, pairs.ds_variance, q_abs.cwiseAbs2());
        add(dv.magnitude, pairs.kept_p_magnitude, d_o_abs);
        add(dv.error, PairBlock::Array(pairs.e_kept_p + growth.rows * pairs.kept_p), d_o_abs);
        add(dv.variance, pairs.kept_p_variance, d_o_abs.cwiseAbs2());
    }
    void store(const KeySums& sums, const std::vector<std::size_t>& lines) {
        sums.dk.store(out_.dk, lines);
        sums.dv.store(out_.dv, lines);
    }
    static Eigen::ArrayXd delta_error(const GradientGrowth& growth, const QueryLines& queries) {
        return growth.delta * queries.delta_abs + 2.0 * u32 * queries.delta.abs() + growth.delta_floor;
    }

    const BwdArgs& args_;
    const GradientOptions& options_;
    Gradients& out_;
    AttentionArgs forward_;
    std::int64_t group_size_;
    std::int64_t heads_of_keys_; ///< query heads that add to one head of dK and dV (W-11)
    std::atomic<std::int64_t> pairs_{0};
};

} // namespace

Gradients backward_in_matrix_form(const BwdArgs& args, const GradientRequest& request,
                                  const GradientOptions& options) {
    Gradients out = empty_gradients(args, request, options);
    MatrixForm form(args, options, out);
    std::vector<Share> rows = shares_of(request.rows, block, [](const RowId& row) { return row.i; });
    std::vector<Share> keys;
    /// Heads that are asked for whole, and their rows.
    std::vector<std::pair<Share, std::vector<Share>>> heads;
    std::map<std::pair<std::int64_t, std::int64_t>, std::vector<Share>> rows_of;
    for (Share& share : rows) rows_of[{share.b, form.key_gradient_head(share.h)}].push_back(std::move(share));
    rows.clear();
    constexpr std::int64_t any_number = std::numeric_limits<std::int64_t>::max();
    const auto position = [](const KeyId& key) { return key.j; };
    for (Share& share : shares_of(request.keys, any_number, position)) {
        const auto found = rows_of.find({share.b, share.h});
        if (found == rows_of.end() || !form.is_whole(share, found->second)) {
            for (std::size_t begin = 0; begin < share.lines.size(); begin += block) {
                const auto first = share.lines.begin() + static_cast<std::ptrdiff_t>(begin);
                const auto left = static_cast<std::int64_t>(share.lines.size() - begin);
                keys.push_back({share.b, share.h, {first, first + std::min(block, left)}});
            }
            continue;
        }
        heads.emplace_back(std::move(share), std::move(found->second));
        rows_of.erase(found);
    }
    for (auto& [head, shares] : rows_of)
        for (Share& share : shares) rows.push_back(std::move(share));
    system::parallel_for(
        heads.size(), [&](std::size_t n) { form.head(heads[n].first, heads[n].second); }, options.threads);
    system::parallel_for(
        rows.size(), [&](std::size_t n) { form.rows(rows[n]); }, options.threads);
    system::parallel_for(
        keys.size(), [&](std::size_t n) { form.keys(keys[n]); }, options.threads);
    system::parallel_for(
        out.d_sink.lines, [&](std::int64_t h) { form.sink(h); }, options.threads);
    out.pairs_evaluated = form.pairs();
    return out;
}

} // namespace fmha::reference
