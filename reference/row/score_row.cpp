#include "reference/row/score_row.hpp"

#include "dispatcher/types/error.hpp"
#include "reference/views.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace fmha::reference {

double elementwise_bias(const FwdArgs& args, const Entry& entry, Decoder decode, const RowId& row,
                        std::int64_t j) {
    return decode(args.bias.type, stored_code(args.bias, row.b, row.h, entry.start_q + row.i, j));
}

double sink_logit(const FwdArgs& args, std::int64_t h) {
    return args.score.sink_logit == nullptr ? -std::numeric_limits<double>::infinity()
                                            : double{args.score.sink_logit[h]};
}

RowScorer::RowScorer(const AttentionArgs& args, const RowParts& parts)
    : args_(args), parts_(parts), dropout_(dropout_constants(args.dropout.p_drop)) {}

void RowScorer::load(std::int64_t b, std::int64_t hk) {
    if (b == b_ && hk == hk_) return;
    if (b != b_) entry_ = parts_.entry(args_, b);
    b_ = b;
    hk_ = hk;
    const bool inside_dot = args_.quant.qscale == QScale::mx;
    k_.clear();
    v_.clear();
    k_descale_.clear();
    keys_of_split_ = 0;
    for (std::int64_t j = 0; j < entry_.seqlen_k; ++j) {
        keys_of_split_ += parts_.in_split(args_.num_splits, args_.split, entry_.seqlen_k, j) ? 1 : 0;
        const KeyPlace place = parts_.place(args_, entry_, b, j);
        k_descale_.push_back(inside_dot ? 1.0 : k_descale(args_, entry_, parts_.decode, b, hk, j, 0, place));
        for (std::int64_t c = 0; c < args_.shape.hdim_q; ++c) {
            const double micro_scale =
                inside_dot ? k_descale(args_, entry_, parts_.decode, b, hk, j, c, place) : 1.0;
            k_.push_back(micro_scale *
                         parts_.decode(args_.k.type, stored_code(args_.k, parts_.element(args_, KvSide::key,
                                                                                         place, hk, c))));
        }
        for (std::int64_t c = 0; c < args_.shape.hdim_v; ++c)
            v_.push_back(v_descale(args_, parts_.decode, b, hk, j, c, place) *
                         parts_.decode(args_.v.type, stored_code(args_.v, parts_.element(args_, KvSide::value,
                                                                                         place, hk, c))));
    }
}

void RowScorer::load_query(const RowId& row) {
    const bool inside_dot = args_.quant.qscale == QScale::mx;
    q_descale_ = inside_dot ? 1.0 : q_descale(args_, entry_, parts_.decode, row.b, row.h, row.i, 0);
    q_.clear();
    for (std::int64_t c = 0; c < args_.shape.hdim_q; ++c) {
        const double micro_scale =
            inside_dot ? q_descale(args_, entry_, parts_.decode, row.b, row.h, row.i, c) : 1.0;
        q_.push_back(micro_scale * parts_.decode(args_.q.type, stored_code(args_.q, row.b, row.h,
                                                                           entry_.start_q + row.i, c)));
    }
}

double RowScorer::beta(const RowId& row, std::int64_t j) const {
    switch (args_.score.bias_type) {
    case BiasType::no_bias:
        return 0.0;
    case BiasType::elementwise:
        return parts_.bias(args_, entry_, parts_.decode, row, j);
    case BiasType::alibi:
        break;
    }
    const double slope = args_.score.alibi_slopes[row.b * args_.score.alibi_stride + row.h];
    return parts_.alibi(args_.mask, slope, entry_.seqlen_q, entry_.seqlen_k, row.i, j);
}

const std::vector<ScoredKey>& RowScorer::score(const RowId& row) {
    load(row.b, row.h / (args_.shape.nhead_q / args_.shape.nhead_k));
    if (row.i < 0 || row.i >= entry_.seqlen_q)
        throw Error("row " + std::to_string(row.i) + " of entry " + std::to_string(row.b) +
                    " was asked for; it has " + std::to_string(entry_.seqlen_q) + " query rows");
    load_query(row);
    keys_.clear();
    largest_beta_ = -std::numeric_limits<double>::infinity();
    for (std::int64_t j = 0; j < entry_.seqlen_k; ++j) {
        if (!parts_.visible(args_.mask, entry_.seqlen_q, entry_.seqlen_k, row.i, j)) continue;
        const double position_bias = beta(row, j);
        largest_beta_ = std::max(largest_beta_, position_bias);
        if (!parts_.in_split(args_.num_splits, args_.split, entry_.seqlen_k, j)) continue;
        ++scores_evaluated_;
        const double* k = &k_[static_cast<std::size_t>(j * args_.shape.hdim_q)];
        double dot = 0.0, absolute = 0.0, square = 0.0;
        for (std::size_t c = 0; c < q_.size(); ++c) {
            const double product = q_[c] * k[c];
            dot += product;
            absolute += std::abs(product);
            square += product * product;
        }
        const double sigma =
            double{args_.score.scale_s} * q_descale_ * k_descale_[static_cast<std::size_t>(j)];
        const double cap = args_.score.logits_soft_cap;
        const double t = sigma * dot;
        const double z = cap > 0.0 ? cap * std::tanh(t / cap) : t;
        ScoredKey key{j, 0.0, std::abs(sigma) * absolute, sigma * sigma * square, position_bias, 1.0};
        key.s = z + key.beta;
        if (key.s == -std::numeric_limits<double>::infinity()) continue;
        if (args_.dropout.p_drop > 0.0F) {
            const std::uint8_t byte = parts_.random_byte({row.b, row.h, row.i, j}, args_.shape.nhead_q,
                                                         args_.dropout.seed, args_.dropout.offset);
            key.kept = byte <= dropout_.threshold ? double{dropout_.rescale} : 0.0;
        }
        keys_.push_back(key);
    }
    return keys_;
}

} // namespace fmha::reference
