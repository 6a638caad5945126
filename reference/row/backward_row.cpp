#include "reference/row/backward_row.hpp"

#include "dispatcher/system/parallel.hpp"
#include "reference/backward_result.hpp"
#include "reference/bounds.hpp"
#include "reference/views.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace fmha::reference {
namespace {

constexpr std::int64_t lines_per_task = 32;

double square(double x) {
    return x * x;
}

/// One visible (row, key) with all that B.9 says about it.
struct Pair {
    double p = 0.0, kept = 1.0, dp = 0.0, ds = 0.0;
    double loss = 1.0; ///< how much larger the rounding of p is than that of one product
    double term = 0.0; ///< p(κB + C), times it
    double e_p = 0.0;  ///< relative error of p
    double zeta = 0.0; ///< that of its score and exponential, as a standard deviation
    double e_ds = 0.0; ///< E_dS
    double e_c = 0.0;  ///< E_c
    double noise =
        0.0; ///< variance of dS before its cast: of the sums inside dP and Δ, of its score, of what underflows
};

/// The decoded tensors of one (entry, query head).
class Head {
  public:
    Head(const BwdArgs& args, const AttentionArgs& forward, const BackwardParts& parts,
         const GradientOptions& options, std::int64_t b, std::int64_t h)
        : args_(args), parts_(parts), kernel_(options.numerics),
          dropout_(dropout_constants(args.dropout.p_drop)), b_(b), h_(h),
          entry_(parts.forward.entry(forward, b)),
          growth_(GradientGrowth::of(args, entry_.seqlen_q, entry_.seqlen_k, options)), forward_(forward) {
        const std::int64_t hk = parts.kv_head(args.shape, h);
        const std::int64_t sq = entry_.seqlen_q, sk = entry_.seqlen_k;
        q_ = decoded(args.q, h, entry_.start_q, sq, args.shape.hdim_q);
        k_ = decoded(args.k, hk, entry_.start_k, sk, args.shape.hdim_q);
        v_ = decoded(args.v, hk, entry_.start_k, sk, args.shape.hdim_v);
        o_ = decoded(args.o, h, entry_.start_q, sq, args.shape.hdim_v);
        d_o_ = decoded(args.d_o, h, entry_.start_q, sq, args.shape.hdim_v);
        lse_ = decoded(args.lse, h, entry_.start_q, sq, 1);
        for (std::int64_t i = 0; i < sq; ++i) {
            delta_.push_back(parts.delta(line(d_o_, i, args.shape.hdim_v), line(o_, i, args.shape.hdim_v)));
            double absolute = 0.0;
            for (std::int64_t c = 0; c < args.shape.hdim_v; ++c)
                absolute += std::abs(at(d_o_, i, c, args.shape.hdim_v) * at(o_, i, c, args.shape.hdim_v));
            delta_abs_.push_back(absolute);
        }
        if (args.score.bias_type == BiasType::alibi) alibi_origin_.resize(static_cast<std::size_t>(sq));
    }

    const Entry& entry() const { return entry_; }
    const GradientGrowth& growth() const { return growth_; }
    const DropoutConstants& dropout() const { return dropout_; }
    double q(std::int64_t i, std::int64_t c) const { return at(q_, i, c, args_.shape.hdim_q); }
    double k(std::int64_t j, std::int64_t c) const { return at(k_, j, c, args_.shape.hdim_q); }
    double d_o(std::int64_t i, std::int64_t c) const { return at(d_o_, i, c, args_.shape.hdim_v); }
    double lse(std::int64_t i) const { return lse_[static_cast<std::size_t>(i)]; }
    double delta(std::int64_t i) const { return delta_[static_cast<std::size_t>(i)]; }
    double delta_abs(std::int64_t i) const { return delta_abs_[static_cast<std::size_t>(i)]; }
    /// E_Δ.
    double delta_error(std::int64_t i) const {
        return growth_.delta * delta_abs(i) + 2.0 * u32 * std::abs(delta(i)) + growth_.delta_floor;
    }

    /// Nothing when row i does not see key j.
    std::optional<Pair> pair(std::int64_t i, std::int64_t j) const {
        if (!sees(i, j)) return std::nullopt;
        double dot = 0.0, a = 0.0;
        for (std::int64_t c = 0; c < args_.shape.hdim_q; ++c) {
            dot += q(i, c) * k(j, c);
            a += std::abs(q(i, c) * k(j, c));
        }
        const double sigma = args_.score.scale_s, beta = bias(i, j);
        const double s = sigma * dot + beta;
        if (s == -infinity) return std::nullopt;
        a *= std::abs(sigma);

        Pair x;
        x.p = parts_.probability(s, lse(i));
        if (args_.dropout.p_drop > 0.0F)
            x.kept = parts_.kept(parts_.byte(args_, entry_, {b_, h_, i, j}), dropout_);
        double dp_abs = 0.0;
        for (std::int64_t c = 0; c < args_.shape.hdim_v; ++c) {
            const double product = d_o(i, c) * at(v_, j, c, args_.shape.hdim_v);
            x.dp += product;
            dp_abs += std::abs(product);
        }
        x.ds = parts_.score_gradient(x.p, x.kept, x.dp, delta(i));

        const bool alibi = args_.score.bias_type == BiasType::alibi;
        const double origin = alibi ? alibi_origin(i, j) : 0.0;
        if (lse(i) > -infinity) { // otherwise p is 0 for every score
            const double top = alibi ? lse(i) - origin : lse(i), bias_part = alibi ? beta - origin : beta;
            const double product = s - beta, logit = product + bias_part;
            x.loss = 1.0 + a + (std::abs(s) + std::abs(lse(i))) / 8.0;
            x.e_p = std::expm1(growth_.score * a +
                               4.0 * u32 * (std::abs(alibi ? product : logit) + std::abs(top) + 1.0) +
                               (alibi ? 6.0 : 2.0) * u32 * std::abs(bias_part)) +
                    kernel_.eps_e;
            // The limit of fp32 is an eighth of E, but an exponent is rounded as often as it is.
            const double rounding = u32 * (2.5 * std::abs(product) + 1.5 * std::abs(bias_part) +
                                           std::abs(logit) + 1.5 * std::abs(top) + std::abs(logit - top));
            if (kernel_.u_p == 0.0) x.e_p = std::max(x.e_p, 8.0 * (std::expm1(rounding) + kernel_.eps_e));
            x.zeta = growth_.score * a / 8.0 + rounding + kernel_.eps_e;
        } else {
            x.e_p = x.zeta = kernel_.eps_e;
        }
        const double terms = x.kept * dp_abs + delta_abs(i);
        const double parts = x.kept * std::abs(x.dp) + std::abs(delta(i));
        const double underflow = growth_.flush * parts + growth_.subnormal;
        x.term = x.p * terms * x.loss;
        x.e_ds = x.p * (growth_.inner * terms + 2.0 * kernel_.u_m * x.kept * dp_abs + 4.0 * u32 * parts) +
                 (x.e_p + 8.0 * u32) * std::abs(x.ds) + underflow;
        x.noise = square(x.p * growth_.inner * terms / 8.0) + square(x.zeta * x.ds) + square(underflow);
        x.e_c = x.e_ds + kernel_.u_p * (std::abs(x.ds) + x.e_ds) + growth_.cast_floor;
        return x;
    }

  private:
    std::vector<double> decoded(const TensorView& view, std::int64_t head, std::int64_t first,
                                std::int64_t rows, std::int64_t cols) const {
        std::vector<double> out;
        for (std::int64_t r = 0; r < rows; ++r)
            for (std::int64_t c = 0; c < cols; ++c)
                out.push_back(parts_.forward.decode(view.type, stored_code(view, b_, head, first + r, c)));
        return out;
    }
    static double at(const std::vector<double>& values, std::int64_t row, std::int64_t c, std::int64_t cols) {
        return values[static_cast<std::size_t>(row * cols + c)];
    }
    static std::span<const double> line(const std::vector<double>& values, std::int64_t row,
                                        std::int64_t cols) {
        return std::span(values).subspan(static_cast<std::size_t>(row * cols),
                                         static_cast<std::size_t>(cols));
    }
    double bias(std::int64_t i, std::int64_t j) const {
        if (args_.score.bias_type == BiasType::elementwise)
            return parts_.forward.bias(forward_, entry_, parts_.forward.decode, {b_, h_, i}, j);
        if (args_.score.bias_type == BiasType::no_bias) return 0.0;
        const double slope = args_.score.alibi_slopes[b_ * args_.score.alibi_stride + h_];
        return parts_.forward.alibi(args_.mask, slope, entry_.seqlen_q, entry_.seqlen_k, i, j);
    }
    bool sees(std::int64_t i, std::int64_t j) const {
        return parts_.forward.visible(args_.mask, entry_.seqlen_q, entry_.seqlen_k, i, j);
    }
    /// The first of [low, high) for which `is` does not hold, which is so for all behind it; `high` when there is none.
    static std::int64_t first_without(std::int64_t low, std::int64_t high, const auto& is) {
        while (low < high) {
            const std::int64_t middle = low + (high - low) / 2;
            is(middle) ? low = middle + 1 : high = middle;
        }
        return low;
    }
    /// β0 of B.2: the largest bias of row i, which sees key j. The keys that it sees lie one beside the other. With a positive slope the bias
    /// rises up to one of them and falls behind it; with another the largest is at an end. Looked for once, because a row may be asked for alone.
    double alibi_origin(std::int64_t i, std::int64_t j) const {
        std::optional<double>& origin = alibi_origin_[static_cast<std::size_t>(i)];
        if (origin) return *origin;
        const std::int64_t first = first_without(0, j, [&](std::int64_t key) { return !sees(i, key); });
        const std::int64_t last =
            first_without(j + 1, entry_.seqlen_k, [&](std::int64_t key) { return sees(i, key); }) - 1;
        if (args_.score.alibi_slopes[b_ * args_.score.alibi_stride + h_] <= 0.0F)
            return *(origin = std::max(bias(i, first), bias(i, last)));
        const auto rises = [&](std::int64_t key) { return bias(i, key + 1) > bias(i, key); };
        return *(origin = bias(i, first_without(first, last, rises)));
    }

    const BwdArgs& args_;
    const BackwardParts& parts_;
    Numerics kernel_;
    DropoutConstants dropout_;
    std::int64_t b_, h_;
    Entry entry_;
    GradientGrowth growth_;
    const AttentionArgs& forward_;
    std::vector<double> q_, k_, v_, o_, d_o_, lse_, delta_, delta_abs_;
    mutable std::vector<std::optional<double>> alibi_origin_; ///< of the rows that have been asked for
};

/// Variance of a cast of P or dS by a type with roundoff u. The first form is about twice the mean over a binade. The error of a small value,
/// whose step is fixed or which is lost whole below the floor, has no such room and counts twice.
double cast_variance(double value, double u, const GradientGrowth& growth) {
    if (std::abs(value) < growth.cast_floor) return 2.0 * square(value);
    return std::max(square(u * value), 2.0 * square(growth.cast_step)) / 3.0;
}

/// Adds one pair's term to a gradient that sums dS times an operand: dQ or dK.
void add_term(GradientTable& table, std::size_t at, const Pair& x, double operand, double scale,
              double inflation, double u, const GradientGrowth& growth) {
    const double size = std::abs(scale * operand);
    table.value[at] += scale * x.ds * operand;
    if (table.magnitude.empty()) return;
    table.magnitude[at] += x.term * size;
    table.error[at] += (x.e_c + inflation * (std::abs(x.ds) + x.e_c)) * size;
    table.variance[at] += (cast_variance(x.ds, u, growth) + x.noise) * size * size;
}

class RowForm {
  public:
    RowForm(const BwdArgs& args, const GradientOptions& options, const BackwardParts& parts, Gradients& out)
        : args_(args), options_(options), parts_(parts), out_(out),
          forward_(attention_of(forward_part(args))) {}

    void row(std::int64_t line) {
        const RowId& asked = out_.request.rows[static_cast<std::size_t>(line)];
        const Head& head = head_of(asked.b, asked.h);
        const std::int64_t i = asked.i;
        out_.d.value[out_.d.at(line, 0)] = parts_.stored_delta(head.delta(i), head.dropout());
        if (options_.companions) {
            out_.d.magnitude[out_.d.at(line, 0)] = head.delta_abs(i);
            out_.d.error[out_.d.at(line, 0)] = head.dropout().p_undrop * head.delta_error(i);
        }
        if (!out_.request.dq && !out_.request.dbias) return;
        const double scale = parts_.scale(args_.score), inflation = head.growth().keys + out_.numerics.u_m;
        for (std::int64_t j = 0; j < head.entry().seqlen_k; ++j) {
            const std::optional<Pair> x = head.pair(i, j);
            if (!x) continue;
            ++pairs_;
            for (std::int64_t c = 0; out_.request.dq && c < args_.shape.hdim_q; ++c)
                add_term(out_.dq, out_.dq.at(line, c), *x, head.k(j, c), scale, inflation, out_.numerics.u_p,
                         head.growth());
            if (!out_.request.dbias) continue;
            const std::size_t at = out_.dbias.at(line, j);
            out_.dbias.value[at] = parts_.bias_gradient(x->ds, head.dropout());
            if (!options_.companions) continue;
            out_.dbias.magnitude[at] = x->term;
            out_.dbias.error[at] = x->e_ds;
        }
    }

    void key(std::int64_t line) {
        const KeyId& asked = out_.request.keys[static_cast<std::size_t>(line)];
        for (std::int64_t h = 0; h < args_.shape.nhead_q; ++h)
            if (parts_.key_gradient_head(args_, h) == asked.h) add_key(line, asked, head_of(asked.b, h));
    }

    void add_key(std::int64_t line, const KeyId& asked, const Head& head) {
        const Numerics& kernel = out_.numerics;
        const double scale = parts_.scale(args_.score), inflation = head.growth().rows + kernel.u_m;
        for (std::int64_t i = 0; i < head.entry().seqlen_q; ++i) {
            const std::optional<Pair> x = head.pair(i, asked.j);
            if (!x) continue;
            ++pairs_;
            for (std::int64_t c = 0; c < args_.shape.hdim_q; ++c)
                add_term(out_.dk, out_.dk.at(line, c), *x, head.q(i, c), scale, inflation, kernel.u_p,
                         head.growth());
            const double w = parts_.value_weight(x->p, x->kept), exact = x->kept * x->p;
            const double relative = x->e_p + kernel.u_p + kernel.u_m + 8.0 * u32 + head.growth().rows;
            for (std::int64_t c = 0; c < args_.shape.hdim_v; ++c) {
                const std::size_t at = out_.dv.at(line, c);
                const double d_o = head.d_o(i, c), size = std::abs(d_o);
                out_.dv.value[at] += w * d_o;
                if (!options_.companions) continue;
                out_.dv.magnitude[at] += exact * size * x->loss;
                out_.dv.error[at] += (exact * relative + head.growth().cast_floor) * size;
                out_.dv.variance[at] +=
                    (cast_variance(exact, kernel.u_p, head.growth()) + square(x->zeta * exact)) * size * size;
            }
        }
    }

    void sink(std::int64_t h) {
        const double sink = parts_.forward.sink(forward_, h);
        if (sink == -infinity) return;
        double value = 0.0, magnitude = 0.0, error = 0.0, total = 0.0;
        std::int64_t rows = 0;
        for (std::int64_t b = 0; b < args_.shape.batch; ++b) {
            const Head& head = head_of(b, h);
            for (std::int64_t i = 0; i < head.entry().seqlen_q; ++i, ++rows) {
                const double share = parts_.sink_share(sink, head.lse(i)), delta = head.delta(i);
                const double size = std::abs(sink) + std::abs(head.lse(i)) + 1.0;
                value -= share * delta;
                magnitude += share * head.delta_abs(i) * (1.0 + size / 8.0);
                error += share * (head.delta_error(i) +
                                  std::abs(delta) * (4.0 * u32 * size + out_.numerics.eps_e)) +
                         least_exponential * std::abs(delta) + 0x1p-149;
                total += share * std::abs(delta);
            }
        }
        const auto at = static_cast<std::size_t>(h);
        out_.d_sink.value[at] = value;
        if (!options_.companions) return;
        out_.d_sink.magnitude[at] = magnitude;
        out_.d_sink.error[at] = error + accumulation_growth(rows, out_.numerics) * total;
    }

    std::int64_t pairs() const { return pairs_; }

  private:
    /// The heads that add to one gradient of keys are kept until another one is asked for.
    const Head& head_of(std::int64_t b, std::int64_t h) {
        const std::pair gradient{b, parts_.key_gradient_head(args_, h)};
        if (gradient != gradient_) heads_.clear();
        gradient_ = gradient;
        return heads_.try_emplace(h, args_, forward_, parts_, options_, b, h).first->second;
    }

    const BwdArgs& args_;
    const GradientOptions& options_;
    const BackwardParts& parts_;
    Gradients& out_;
    AttentionArgs forward_;
    std::map<std::int64_t, Head> heads_;
    std::pair<std::int64_t, std::int64_t> gradient_{-1, -1};
    std::int64_t pairs_ = 0;
};

} // namespace

double row_delta(std::span<const double> d_o, std::span<const double> o) {
    double delta = 0.0;
    for (std::size_t c = 0; c < o.size(); ++c) delta += d_o[c] * o[c];
    return delta;
}
double probability(double score, double lse) {
    return lse == -infinity ? 0.0 : std::exp(score - lse);
}
std::uint8_t dropout_byte(const BwdArgs& args, const Entry& entry, const RandomSite& site) {
    if (args.randval.present())
        return static_cast<std::uint8_t>(
            stored_code(args.randval, site.b, site.h, entry.start_q + site.i, site.j));
    return random_byte(site, args.shape.nhead_q, args.dropout.seed, args.dropout.offset);
}
double kept_factor(std::uint8_t byte, const DropoutConstants& dropout) {
    return byte <= dropout.threshold ? double{dropout.rescale} : 0.0;
}
double score_gradient(double p, double kept, double dp, double delta) {
    return p * (kept * dp - delta);
}
double value_weight(double p, double kept) {
    return kept * p;
}
double bias_gradient(double ds, const DropoutConstants&) {
    return ds;
}
double gradient_scale(const ScoreArgs& score) {
    return score.scale_s;
}
double stored_delta(double delta, const DropoutConstants& dropout) {
    return dropout.p_undrop * delta;
}
double sink_share(double sink, double lse) {
    return std::exp(sink - lse);
}
std::int64_t kv_head_of(const Shape& shape, std::int64_t h) {
    return h / (shape.nhead_q / shape.nhead_k);
}

std::int64_t key_gradient_head(const BwdArgs& args, std::int64_t h) {
    return args.reduce_dk_dv ? kv_head_of(args.shape, h) : h;
}

Gradients backward_row_by_row(const BwdArgs& args, const GradientRequest& request,
                              const GradientOptions& options, const BackwardParts& parts) {
    Gradients out = empty_gradients(args, request, options);
    std::atomic<std::int64_t> pairs{0};
    const auto share_out = [&](std::int64_t count, void (RowForm::*compute)(std::int64_t)) {
        const std::int64_t share =
            std::max(lines_per_task, count / system::thread_count(options.threads) + 1);
        system::parallel_for((count + share - 1) / share,
                             [&](std::int64_t task) {
                                 RowForm form(args, options, parts, out);
                                 for (std::int64_t n = task * share; n < std::min(count, (task + 1) * share);
                                      ++n)
                                     (form.*compute)(n);
                                 pairs += form.pairs();
                             },
                             options.threads);
    };
    share_out(out.d.lines, &RowForm::row);
    share_out(out.dk.lines, &RowForm::key);
    share_out(out.d_sink.lines, &RowForm::sink);
    out.pairs_evaluated = pairs;
    return out;
}

} // namespace fmha::reference
