#pragma once

#include "harness/cases/case.hpp"
#include "harness/data/edge_code.hpp"
#include "harness/data/random.hpp"

#include <cstdint>
#include <optional>
#include <span>

namespace fmha::harness {

/// The real numbers that a case's data set puts into its tensors (tolerances B.10 and the exact fills),
/// before the descales are divided out and before rounding to the stored type. A value depends on the seed
/// and its logical position only.
class FwdFill {
  public:
    FwdFill(const Case& c, const ElementTypes& types);

    /// Row i of Q, row j of K (of an entry with `seqlen_k` keys), row j of V.
    void q_row(std::int64_t b, std::int64_t h, std::int64_t i, std::span<double> row) const;
    void k_row(std::int64_t b, std::int64_t hk, std::int64_t j, std::int64_t seqlen_k,
               std::span<double> row) const;
    void v_row(std::int64_t b, std::int64_t hk, std::int64_t j, std::span<double> row) const;

    /// normal(0,1), one in sixteen −∞ (E-2).
    double bias(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const;
    /// Normal or 30 … 60, and −∞ for every fourth head when there are several (K-5).
    float sink_logit(std::int64_t h) const;

    /// Descale of the tensor `stream` (0 q, 1 k, 2 v) at the given place. Fills with exact answers use exact
    /// powers of two; the others use powers of two and general values side by side.
    double descale(int stream, std::int64_t b, std::int64_t h, std::int64_t block) const;
    /// Exponent code of an e8m0 scale.
    std::uint32_t mx_scale(int stream, std::int64_t b, std::int64_t h, std::int64_t row,
                           std::int64_t block) const;

    const std::optional<EdgeCode>& edge() const { return edge_; }

  private:
    bool exact() const;
    /// The generator of a row of Q, of K or V, of the descales of a tensor.
    Random of_query(const Random& stream, std::int64_t b, std::int64_t h, std::int64_t i) const;
    Random of_key(const Random& stream, std::int64_t b, std::int64_t hk, std::int64_t j) const;
    Random of_descale(int stream, std::int64_t b, std::int64_t h) const;
    void normal_row(const Random& random, double factor, std::span<double> row) const;
    void uniform_row(const Random& random, std::span<double> row) const;

    const Case& case_;
    ElementTypes types_;
    Random q_, k_, v_, bias_, sink_, descale_;
    double sigma_;
    std::optional<EdgeCode> edge_;
};

/// scale_s as kernels receive it (H-3).
float resolved_scale(const Case& c);

} // namespace fmha::harness
