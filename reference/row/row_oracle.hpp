#pragma once

#include "reference/attention.hpp"
#include "reference/numerics/dropout.hpp"
#include "reference/numerics/formats.hpp"
#include "reference/numerics/lengths.hpp"
#include "reference/numerics/mask.hpp"
#include "reference/numerics/places.hpp"
#include "reference/numerics/position_bias.hpp"
#include "reference/numerics/scales.hpp"

#include <cstdint>
#include <span>

namespace fmha::reference {

/// β(i, j) of E-1, in natural-log units.
double elementwise_bias(const FwdArgs& args, const Entry& entry, Decoder decode, const RowId& row,
                        std::int64_t j);

/// The sink logit of a query head, −∞ when absent (K-4, K-5).
double sink_logit(const FwdArgs& args, std::int64_t h);

/// The rules that the row oracle is assembled from. Tests replace one by a faulty one and see the other
/// oracle disagree; everything else uses the defaults.
struct RowParts {
    Entry (*entry)(const AttentionArgs&, std::int64_t b) = entry_in_cache;
    KeyPlace (*place)(const AttentionArgs&, const Entry&, std::int64_t b, std::int64_t j) = key_place;
    std::int64_t (*element)(const AttentionArgs&, KvSide, const KeyPlace&, std::int64_t hk,
                            std::int64_t c) = key_element;
    bool (*in_split)(std::int64_t n, std::int64_t s, std::int64_t seqlen_k,
                     std::int64_t j) = reference::in_split;
    Decoder decode = reference::decode;
    bool (*visible)(const MaskArgs&, std::int64_t seqlen_q, std::int64_t seqlen_k, std::int64_t i,
                    std::int64_t j) = reference::visible;
    double (*alibi)(const MaskArgs&, double slope, std::int64_t seqlen_q, std::int64_t seqlen_k,
                    std::int64_t i, std::int64_t j) = alibi_bias;
    double (*bias)(const FwdArgs&, const Entry&, Decoder, const RowId&, std::int64_t j) = elementwise_bias;
    std::uint8_t (*random_byte)(const RandomSite&, std::int64_t nhead_q, std::uint64_t seed,
                                std::uint64_t offset) = reference::random_byte;
    double (*sink)(const FwdArgs&, std::int64_t h) = sink_logit;
};

/// F-1 … F-10 one row after another, in plain loops. Same contract as `attention`.
ForwardRows forward_row_by_row(const AttentionArgs& args, std::span<const RowId> rows,
                               const ForwardOptions& options, const RowParts& parts = {});

} // namespace fmha::reference
