#include "reference/row/row_oracle.hpp"

#include "dispatcher/system/parallel.hpp"
#include "reference/bounds.hpp"
#include "reference/result.hpp"
#include "reference/row/score_row.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

namespace fmha::reference {
namespace {

struct Normaliser {
    double maximum = -infinity; ///< M of F-6
    double sum = 0.0;           ///< L of F-6
};

Normaliser normaliser_of(const std::vector<ScoredKey>& keys, double sink) {
    Normaliser n;
    n.maximum = sink;
    for (const ScoredKey& key : keys) n.maximum = std::max(n.maximum, key.s);
    for (const ScoredKey& key : keys) n.sum += std::exp(key.s - n.maximum);
    if (sink > -infinity) n.sum += std::exp(sink - n.maximum);
    return n;
}

void store_scores(ForwardRows& out, std::int64_t r, const std::vector<ScoredKey>& keys, const Normaliser& n) {
    out.row_max(r) = n.maximum;
    out.lse(r) = n.maximum > -infinity ? n.maximum + std::log(n.sum) : -infinity;
    out.visible_keys(r) = static_cast<std::int64_t>(keys.size());
    for (const ScoredKey& key : keys) out.score_max(r) = std::max(out.score_max(r), key.s);
    if (keys.empty()) return;
    out.first_visible(r) = keys.front().j;
    out.last_visible(r) = keys.back().j;
}

void store_output(ForwardRows& out, std::int64_t r, const std::vector<ScoredKey>& keys, const Normaliser& n,
                  const RowScorer& scorer) {
    for (const ScoredKey& key : keys) {
        const double w = std::exp(key.s - n.maximum) / n.sum * key.kept;
        const double* v = scorer.value_row(key.j);
        for (std::int64_t c = 0; c < out.o.cols(); ++c) out.o(r, c) += w * v[c];
    }
}

/// Of ALiBi in one row: β0 of B.2, which is the largest β, how far the others are from it, and how far the nearest of them.
struct PositionBias {
    bool present = false;
    double origin = 0.0, range = 0.0, gap = std::numeric_limits<double>::infinity();
};

PositionBias position_bias(const FwdArgs& args, const std::vector<ScoredKey>& keys, double largest_beta) {
    PositionBias bias;
    if (args.score.bias_type != BiasType::alibi || keys.empty()) return bias;
    bias.present = true;
    bias.origin = largest_beta;
    for (const ScoredKey& key : keys) {
        bias.range = std::max(bias.range, std::abs(key.beta - bias.origin));
        bias.gap = std::min(bias.gap, std::abs(key.beta - bias.origin));
    }
    return bias;
}

/// η of B.2 for one key, without ALiBi's addition to that of the row.
double score_error(const FwdArgs& args, const Numerics& kernel, const ScoredKey& key) {
    const bool alibi = args.score.bias_type == BiasType::alibi;
    double error = (accumulation_growth(args.shape.hdim_q + 2, kernel) + 2.0 * kernel.u_m) * key.a +
                   4.0 * u32 * (std::abs(alibi ? key.s - key.beta : key.s) + 1.0);
    if (args.score.logits_soft_cap > 0.0F) error += double{args.score.logits_soft_cap} * kernel.eps_t;
    if (args.score.bias_type == BiasType::elementwise) error += 2.0 * u32 * std::abs(key.beta);
    return error;
}

/// ζ² of B.3 for one key.
double score_variance(const FwdArgs& args, const Numerics& kernel, const ScoredKey& key, double origin) {
    const double accumulation =
        kernel.u_a * kernel.u_a / 3.0 * (static_cast<double>(args.shape.hdim_q) / 2.0) * key.square;
    const double relative = key.s - origin;
    const double score = u32 * u32 * (relative * relative + 1.0);
    const double operands = 4.0 / 3.0 * kernel.u_m * kernel.u_m * key.square;
    return accumulation + score + operands + kernel.eps_e * kernel.eps_e / 3.0;
}

/// Needs out.o of the row.
void store_companions(ForwardRows& out, std::int64_t r, const std::vector<ScoredKey>& keys,
                      const Normaliser& n, const RowScorer& scorer, const FwdArgs& args) {
    const double cast_square = out.numerics.u_p * out.numerics.u_p / 3.0;
    const PositionBias bias = position_bias(args, keys, scorer.largest_beta());
    out.ell(r) = n.sum;
    for (const ScoredKey& key : keys) {
        out.eta(r) = std::max(out.eta(r), score_error(args, out.numerics, key));
        out.max_a(r) = std::max(out.max_a(r), key.a);
        const double w = std::exp(key.s - n.maximum) / n.sum * key.kept;
        const double zeta_square = score_variance(args, out.numerics, key, bias.origin);
        const double* v = scorer.value_row(key.j);
        for (std::int64_t c = 0; c < out.o.cols(); ++c) {
            const double distance = v[c] - out.o(r, c);
            out.weighted_abs(r, c) += w * std::abs(v[c]);
            out.abs_v(r, c) += std::abs(v[c]);
            out.square_v(r, c) += v[c] * v[c];
            out.weight_variance(r, c) +=
                w * w * (zeta_square * distance * distance + cast_square * v[c] * v[c]);
        }
    }
    if (bias.present) out.eta(r) += alibi_error(bias.range, bias.gap, out.max_a(r));
}

constexpr std::int64_t rows_per_task = 32;

} // namespace

ForwardRows forward_row_by_row(const AttentionArgs& args, std::span<const RowId> rows,
                               const ForwardOptions& options, const RowParts& parts) {
    ForwardRows out = empty_result(args, rows, options);
    std::atomic<std::int64_t> scores_evaluated{0};
    const auto count = static_cast<std::int64_t>(rows.size());
    const std::int64_t share = std::max(rows_per_task, count / system::thread_count(options.threads) + 1);
    const auto compute = [&](std::int64_t task) {
        RowScorer scorer(args, parts);
        for (std::int64_t r = task * share; r < std::min(count, (task + 1) * share); ++r) {
            const RowId& row = rows[static_cast<std::size_t>(r)];
            const std::vector<ScoredKey>& keys = scorer.score(row);
            const Normaliser normaliser = normaliser_of(keys, parts.sink(args, row.h));
            out.seqlen_k(r) = scorer.keys_of_split();
            store_scores(out, r, keys, normaliser);
            store_output(out, r, keys, normaliser, scorer);
            if (options.companions) store_companions(out, r, keys, normaliser, scorer, args);
        }
        scores_evaluated += scorer.scores_evaluated();
    };
    system::parallel_for((count + share - 1) / share, compute, options.threads);
    out.scores_evaluated = scores_evaluated;
    return out;
}

Table forward_low_precision(const FwdArgs& fwd, std::span<const RowId> rows, const ElementTypes& types,
                            int threads) {
    return attention_low_precision(attention_of(fwd), rows, types, threads);
}

Table attention_low_precision(const AttentionArgs& args, std::span<const RowId> rows,
                              const ElementTypes& types, int threads) {
    const auto count = static_cast<std::int64_t>(rows.size());
    Table o(count, args.shape.hdim_v);
    const RowParts parts;
    const std::int64_t share = std::max(rows_per_task, count / system::thread_count(threads) + 1);
    const auto compute = [&](std::int64_t task) {
        RowScorer scorer(args, parts);
        for (std::int64_t r = task * share; r < std::min(count, (task + 1) * share); ++r) {
            const RowId& row = rows[static_cast<std::size_t>(r)];
            const std::vector<ScoredKey>& keys = scorer.score(row);
            const Normaliser n = normaliser_of(keys, parts.sink(args, row.h));
            for (const ScoredKey& key : keys) {
                const double p = round_to(types.p, std::exp(key.s - n.maximum) * key.kept);
                const double* v = scorer.value_row(key.j);
                for (std::int64_t c = 0; c < o.cols(); ++c) o(r, c) += p / n.sum * v[c];
            }
            for (std::int64_t c = 0; c < o.cols(); ++c)
                o(r, c) = round_to(types.o, double{args.score.scale_o} * o(r, c));
        }
    };
    system::parallel_for((count + share - 1) / share, compute, threads);
    return o;
}

} // namespace fmha::reference
