#pragma once

#include "dispatcher/types/args.hpp"
#include "reference/forward.hpp"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

/// The gradients of attention in binary64 from the stored results of forward and of the caller (semantics section 20, tolerances B.9).
namespace fmha::reference {

/// One logical key of a head of dK and dV: a query head, or with reduce_dk_dv a KV head (W-11).
struct KeyId {
    std::int64_t b = 0, h = 0, j = 0;
    friend bool operator==(const KeyId&, const KeyId&) = default;
    friend auto operator<=>(const KeyId&, const KeyId&) = default;
};

/// The wanted gradients; the cost is proportional to them.
struct GradientRequest {
    std::vector<RowId> rows; ///< of dQ and D
    std::vector<KeyId> keys; ///< of dK and dV
    bool dbias = false;      ///< of `rows`
    bool d_sink = false;     ///< every head
    bool dq = true;          ///< of `rows`; without it and dBias, D alone costs next to nothing
};

struct GradientOptions {
    Numerics numerics{}; ///< u_p and f_p are those of P and of dS (W-15)
    std::int64_t dq_parts =
        1; ///< partial sums of which dQ consists: splits, or key tiles that are added atomically
    bool companions = true; ///< also magnitudes, errors and variances, which the bounds need
    int threads = 0;        ///< 0 = as many as the machine has
};

/// One gradient, `lines` x cols values of each kind; the kinds after the first are companions.
struct GradientTable {
    std::int64_t lines = 0, cols = 0;
    std::vector<double> value;
    /// The base of rounding errors: the sum of the absolute values of all terms, each with how much its score can lose. For the
    /// agreement of the oracles.
    std::vector<double> magnitude;
    std::vector<double> error;    ///< E of B.9, before the output is rounded
    std::vector<double> variance; ///< of G2b, without the rounding of the output

    std::size_t at(std::int64_t line, std::int64_t c) const {
        return static_cast<std::size_t>(line * cols + c);
    }
};

/// Gradients as real numbers, unrounded, lines in the order asked. A table that was not asked for has no lines.
struct Gradients {
    GradientRequest request;
    GradientTable dq;     ///< rows x hdim_q (W-7)
    GradientTable d;      ///< rows x 1: p_undrop · Δ (W-1)
    GradientTable dbias;  ///< rows x the longest Sk asked about (W-9); 0 where not visible, and from Sk(b) on
    GradientTable dk;     ///< keys x hdim_q (W-8)
    GradientTable dv;     ///< keys x hdim_v (W-4)
    GradientTable d_sink; ///< nhead_q x 1 (W-10)
    Numerics numerics;
    std::int64_t pairs_evaluated = 0; ///< visible (row, key) behind the rows, and behind the keys asked for
};

/// Computes the gradients that are asked for. Takes Q, K, V, O, dO and LSE as stored, by any kernel, and random bytes from `randval`
/// where it is present. Reads inputs only inside the logical ranges and no output. Throws ProblemError for soft-cap, sink
/// tokens (20.1) or contradictory lengths, Error for a row or key outside its entry.
Gradients backward(const BwdArgs& args, const GradientRequest& request, const GradientOptions& options = {},
                   Oracle oracle = Oracle::matrix);

/// Every logical row, and every logical key of every head of dK; entries outermost.
std::vector<RowId> all_rows(const BwdArgs& args);
std::vector<KeyId> all_keys(const BwdArgs& args);
/// The sample of B.1, of rows as in forward, and of keys with the same fixed positions.
std::vector<RowId> sampled_rows(const BwdArgs& args, std::uint64_t seed, std::int64_t random_rows = 64);
std::vector<KeyId> sampled_keys(const BwdArgs& args, std::uint64_t seed, std::int64_t random_keys = 64);

/// The forward problem behind a backward one, with the inputs that both have, for functions that read `FwdArgs`.
FwdArgs forward_part(const BwdArgs& args);

/// Limits of one line of a gradient (B.9).
class GradientBound {
  public:
    /// D and d_sink are stored in fp32 for every tag.
    enum class Stored : std::uint8_t { tag, fp32 };
    /// `table` must be one of `gradients`, have companions and outlive this.
    GradientBound(const Gradients& gradients, const GradientTable& table, std::int64_t line, Stored stored);

    /// Unrounded.
    double expected(std::int64_t c) const { return table_.value[table_.at(line_, c)]; }
    double error(std::int64_t c) const { return table_.error[table_.at(line_, c)]; }
    /// G1b: the largest |x − expected(c)| that is accepted. With fp32 P an eighth of the sum of the errors of scores,
    /// because there is no G2b then.
    double limit(std::int64_t c) const;
    /// G2b: predicted variance of x − expected(c); for a tag of 16 bits.
    double variance(std::int64_t c) const;

  private:
    const GradientTable& table_;
    std::int64_t line_;
    double u_o_, f_o_, share_;
};

/// The largest distance between two results in units of the agreement bound, 1e-12 of the magnitude; at most 1 when they
/// agree. Infinite when requests or shapes differ. `x` must have companions.
double oracle_disagreement(const Gradients& x, const Gradients& y);

} // namespace fmha::reference
