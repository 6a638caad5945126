#include "reference/backward.hpp"

#include "dispatcher/types/error.hpp"
#include "reference/backward_result.hpp"
#include "reference/bounds.hpp"
#include "reference/distance.hpp"
#include "reference/matrix/backward_blocks.hpp"
#include "reference/numerics/dropout.hpp"
#include "reference/numerics/lengths.hpp"
#include "reference/row/backward_row.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

namespace fmha::reference {
namespace {

/// Probabilities this small are where binary64's exponential ends; times large values, this is left.
constexpr double lost_gradient = 1e-260;

GradientTable table(std::size_t lines, std::int64_t cols, bool companions) {
    GradientTable out;
    out.lines = static_cast<std::int64_t>(lines);
    out.cols = cols;
    out.value.assign(lines * static_cast<std::size_t>(cols), 0.0);
    if (companions) out.magnitude = out.error = out.variance = out.value;
    return out;
}

/// Heads of dK and dV (W-11).
std::int64_t heads_of_keys(const BwdArgs& args) {
    return args.reduce_dk_dv ? args.shape.nhead_k : args.shape.nhead_q;
}

double disagreement(const GradientTable& x, const GradientTable& y) {
    if (x.lines != y.lines || x.cols != y.cols || x.magnitude.size() != x.value.size()) return infinity;
    double worst = 0.0;
    for (std::size_t n = 0; n < x.value.size(); ++n)
        worst = std::max(worst, distance(x.value[n], y.value[n], 1e-12 * x.magnitude[n] + lost_gradient));
    return worst;
}

void require_inside(const BwdArgs& args, const GradientRequest& request) {
    const FwdArgs forward = forward_part(args);
    const auto check = [&](const char* what, const auto& id, std::int64_t heads, std::int64_t position,
                           bool query) {
        if (id.b < 0 || id.b >= args.shape.batch)
            throw Error(std::string(what) + " of entry " + std::to_string(id.b) +
                        " was asked for; there are " + std::to_string(args.shape.batch) + " entries");
        if (id.h < 0 || id.h >= heads)
            throw Error(std::string(what) + " of head " + std::to_string(id.h) +
                        " was asked for; there are " + std::to_string(heads) + " heads");
        const EntryLengths lengths = entry_lengths(forward, id.b);
        const std::int64_t length = query ? lengths.seqlen_q : lengths.seqlen_k;
        if (position < 0 || position >= length)
            throw Error(std::string(what) + " " + std::to_string(position) + " of entry " +
                        std::to_string(id.b) + " was asked for; it has " + std::to_string(length));
    };
    for (const RowId& row : request.rows) check("row", row, args.shape.nhead_q, row.i, true);
    for (const KeyId& key : request.keys) check("key", key, heads_of_keys(args), key.j, false);
}

} // namespace

FwdArgs forward_part(const BwdArgs& args) {
    FwdArgs out;
    out.shape = args.shape;
    out.shape.min_seqlen_q = 0;
    out.q = args.q;
    out.k = args.k;
    out.v = args.v;
    out.bias = args.bias;
    out.lengths = args.lengths;
    out.mask = args.mask;
    out.score = args.score;
    out.dropout = args.dropout;
    return out;
}

Gradients empty_gradients(const BwdArgs& args, const GradientRequest& request,
                          const GradientOptions& options) {
    if (args.score.logits_soft_cap > 0.0F)
        throw ProblemError("20.1", "logits_soft_cap", std::to_string(args.score.logits_soft_cap),
                           "backward has no soft-cap");
    if (args.mask.sink > 0) throw ProblemError("K-2", "sink", args.mask.sink, "backward has no sink tokens");
    require_inside(args, request);
    const FwdArgs forward = forward_part(args);
    std::int64_t longest = 0;
    for (const RowId& row : request.rows) longest = std::max(longest, entry_lengths(forward, row.b).seqlen_k);
    const bool companions = options.companions;
    Gradients out;
    out.request = request;
    out.numerics = options.numerics;
    out.dq = table(request.dq ? request.rows.size() : 0, args.shape.hdim_q, companions);
    out.d = table(request.rows.size(), 1, companions);
    if (request.dbias) out.dbias = table(request.rows.size(), longest, companions);
    out.dk = table(request.keys.size(), args.shape.hdim_q, companions);
    out.dv = table(request.keys.size(), args.shape.hdim_v, companions);
    if (request.d_sink) out.d_sink = table(static_cast<std::size_t>(args.shape.nhead_q), 1, companions);
    return out;
}

GradientGrowth GradientGrowth::of(const BwdArgs& args, std::int64_t seqlen_q, std::int64_t seqlen_k,
                                  const GradientOptions& options) {
    const Numerics& kernel = options.numerics;
    GradientGrowth out;
    out.score = accumulation_growth(args.shape.hdim_q + 2, kernel) + 2.0 * kernel.u_m;
    out.inner = accumulation_growth(args.shape.hdim_v + 2, kernel);
    out.delta = accumulation_growth(args.shape.hdim_v + 1, kernel);
    out.delta_floor = static_cast<double>(args.shape.hdim_v + 1) * 0x1p-150;
    // One sum of the products of all query heads (W-11).
    const std::int64_t heads = args.shape.nhead_q / heads_of_keys(args);
    out.rows = accumulation_growth(heads * seqlen_q, kernel);
    out.keys =
        accumulation_growth(seqlen_k, kernel) + strict_growth(static_cast<double>(options.dq_parts), u32);
    // Floors are not divided by 8 with fp32.
    const double whole = kernel.u_p == 0.0 ? 8.0 : 1.0;
    const double p_undrop = dropout_constants(args.dropout.p_drop).p_undrop;
    out.cast_floor = whole * kernel.f_p / p_undrop;
    out.cast_step = kernel.f_o / p_undrop; // P and dS have the type of O (W-15)
    out.flush = whole * least_exponential;
    out.subnormal = whole * 0x1p-149 / p_undrop;
    return out;
}

Gradients backward(const BwdArgs& args, const GradientRequest& request, const GradientOptions& options,
                   Oracle oracle) {
    return oracle == Oracle::matrix ? backward_in_matrix_form(args, request, options)
                                    : backward_row_by_row(args, request, options);
}

std::vector<RowId> all_rows(const BwdArgs& args) {
    return all_rows(forward_part(args));
}

std::vector<KeyId> all_keys(const BwdArgs& args) {
    const FwdArgs forward = forward_part(args);
    std::vector<KeyId> keys;
    for (std::int64_t b = 0; b < args.shape.batch; ++b) {
        const std::int64_t count = entry_lengths(forward, b).seqlen_k;
        for (std::int64_t h = 0; h < heads_of_keys(args); ++h)
            for (std::int64_t j = 0; j < count; ++j) keys.push_back({b, h, j});
    }
    return keys;
}

std::vector<RowId> sampled_rows(const BwdArgs& args, std::uint64_t seed, std::int64_t random_rows) {
    return sampled_rows(forward_part(args), seed, random_rows);
}

std::vector<KeyId> sampled_keys(const BwdArgs& args, std::uint64_t seed, std::int64_t random_keys) {
    // Keys take the place of rows: the same positions of the other side, without a mask that would name ends.
    FwdArgs turned = forward_part(args);
    std::swap(turned.shape.seqlen_q, turned.shape.seqlen_k);
    std::swap(turned.lengths.seqstart_q, turned.lengths.seqstart_k);
    std::swap(turned.lengths.seqlen_q, turned.lengths.seqlen_k);
    std::swap(turned.lengths.cu_seqlen_q, turned.lengths.cu_seqlen_k);
    turned.mask = {};
    turned.shape.nhead_q = heads_of_keys(args);
    std::vector<KeyId> keys;
    for (const RowId& row : sampled_rows(turned, seed, random_keys)) keys.push_back({row.b, row.h, row.i});
    return keys;
}

GradientBound::GradientBound(const Gradients& gradients, const GradientTable& table, std::int64_t line,
                             Stored stored)
    : table_(table), line_(line), u_o_(stored == Stored::fp32 ? u32 : gradients.numerics.u_o),
      f_o_(stored == Stored::fp32 ? 0x1p-150 : gradients.numerics.f_o),
      share_(stored == Stored::tag && gradients.numerics.u_p == 0.0 ? 0.125 : 1.0) {}

double GradientBound::limit(std::int64_t c) const {
    return share_ * (1.0 + u_o_) * error(c) + u_o_ * std::abs(expected(c)) + f_o_;
}

double GradientBound::variance(std::int64_t c) const {
    return u_o_ * u_o_ * expected(c) * expected(c) / 3.0 + table_.variance[table_.at(line_, c)] +
           f_o_ * f_o_ / 3.0;
}

double oracle_disagreement(const Gradients& x, const Gradients& y) {
    if (x.request.rows != y.request.rows || x.request.keys != y.request.keys) return infinity;
    return std::max({disagreement(x.dq, y.dq), disagreement(x.d, y.d), disagreement(x.dbias, y.dbias),
                     disagreement(x.dk, y.dk), disagreement(x.dv, y.dv), disagreement(x.d_sink, y.d_sink)});
}

} // namespace fmha::reference
