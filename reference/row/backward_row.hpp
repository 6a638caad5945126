#pragma once

#include "reference/backward.hpp"
#include "reference/numerics/dropout.hpp"
#include "reference/numerics/formats.hpp"
#include "reference/row/row_oracle.hpp"

#include <cstdint>
#include <span>

namespace fmha::reference {

/// Δ of one row (W-1).
double row_delta(std::span<const double> d_o, std::span<const double> o);
/// p of one visible key (W-2).
double probability(double score, double lse);
/// The random byte of D-5, or the stored one of `randval` where that is present.
std::uint8_t dropout_byte(const BwdArgs& args, const Entry& entry, const RandomSite& site);
/// κ (W-3).
double kept_factor(std::uint8_t byte, const DropoutConstants& dropout);
/// dS of one visible key (W-6).
double score_gradient(double p, double kept, double dp, double delta);
/// The weight of dO in dV (W-4).
double value_weight(double p, double kept);
/// dBias of one visible key (W-9).
double bias_gradient(double ds, const DropoutConstants& dropout);
/// The factor of dQ and dK (W-7, W-8).
double gradient_scale(const ScoreArgs& score);
/// D of one row: p_undrop · Δ.
double stored_delta(double delta, const DropoutConstants& dropout);
/// The share of the sink in one row (W-10).
double sink_share(double sink, double lse);
/// KV head of a query head (H-1).
std::int64_t kv_head_of(const Shape& shape, std::int64_t h);
/// The head of dK and dV that query head h adds to (W-11).
std::int64_t key_gradient_head(const BwdArgs& args, std::int64_t h);

/// The rules that the row form is assembled from. Tests replace one by a faulty one and see the matrix form disagree;
/// everything else uses the defaults.
struct BackwardParts {
    RowParts forward; ///< entry, decode, visible, alibi, bias, sink
    double (*delta)(std::span<const double> d_o, std::span<const double> o) = row_delta;
    double (*probability)(double score, double lse) = reference::probability;
    std::uint8_t (*byte)(const BwdArgs&, const Entry&, const RandomSite&) = dropout_byte;
    double (*kept)(std::uint8_t, const DropoutConstants&) = kept_factor;
    double (*score_gradient)(double p, double kept, double dp, double delta) = reference::score_gradient;
    double (*value_weight)(double p, double kept) = reference::value_weight;
    double (*bias_gradient)(double ds, const DropoutConstants&) = reference::bias_gradient;
    double (*scale)(const ScoreArgs&) = gradient_scale;
    double (*stored_delta)(double delta, const DropoutConstants&) = reference::stored_delta;
    double (*sink_share)(double sink, double lse) = reference::sink_share;
    std::int64_t (*kv_head)(const Shape&, std::int64_t h) = kv_head_of;
    std::int64_t (*key_gradient_head)(const BwdArgs&, std::int64_t h) = reference::key_gradient_head;
};

/// W-1 to W-10 one row, one key and one channel after another. Same contract as `backward`.
Gradients backward_row_by_row(const BwdArgs& args, const GradientRequest& request,
                              const GradientOptions& options, const BackwardParts& parts = {});

} // namespace fmha::reference
