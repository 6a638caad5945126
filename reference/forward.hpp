#pragma once

#include "dispatcher/types/field_list.hpp"
#include "reference/kernel_numerics.hpp"
#include "reference/rows.hpp"
#include "reference/table.hpp"

#include <cstdint>
#include <span>
#include <vector>

/// Forward attention in binary64 from the stored inputs (semantics sections 2 to 15, tolerances B.1 and B.2).
namespace fmha::reference {

/// `row_by_row` follows F-1 … F-10 literally, `matrix` works on blocks with Eigen and is fast. They share the
/// views and nothing else, and agree within tolerances B.1.
enum class Oracle : std::uint8_t { row_by_row, matrix };

struct ForwardOptions {
    bool companions = true; ///< also the sums that the bounds need
    Numerics numerics;      ///< enters eta and the score part of the variance
    int threads = 0;        ///< 0 = as many as the machine has
};

/// One entry per requested row, in the order asked; tables are rows x hdim_v. Companions are empty unless
/// asked for.
struct ForwardRows {
    std::vector<RowId> rows;
    Table o;            ///< O of F-10 before scale_o and before any rounding
    Column<double> lse; ///< F-7; −∞ without visible key and sink
    Column<double>
        score_max; ///< max_j s(j) over visible keys, −∞ without one; the score itself when there is one key
    Column<double> row_max;             ///< M of F-6: score_max or the sink logit
    Column<std::int64_t> visible_keys;  ///< keys with s(j) > −∞ (E-2)
    Column<std::int64_t> first_visible; ///< −1 without one
    Column<std::int64_t> last_visible;  ///< −1 without one
    Column<std::int64_t> seqlen_k;      ///< Sk(b)

    Column<double> eta, ell, max_a; ///< η, ℓ and max_j a(j) of B.2
    Table weighted_abs;             ///< A(c) = Σ w|v̂|
    Table abs_v;                    ///< Σ|v̂| over visible keys: p_undrop · V1(c)
    Table square_v;                 ///< Σ v̂² over visible keys
    Table weight_variance; ///< Σ w²ζ²(v̂ − O)² + u_p²/3·Σ w²v̂², the part of B.3 that depends on the weights

    Numerics numerics;
    double scale_o = 1.0, p_undrop = 1.0;
    std::int64_t scores_evaluated = 0; ///< pairs (row, key) that were looked at

    bool has_companions() const { return eta.size() > 0; }
};
FMHA_FIELDS(ForwardRows, rows, o, lse, score_max, row_max, visible_keys, first_visible, last_visible,
            seqlen_k, eta, ell, max_a, weighted_abs, abs_v, square_v, weight_variance, numerics, scale_o,
            p_undrop, scores_evaluated)

/// Computes `rows` of forward attention at a cost proportional to their number. Reads inputs only inside the
/// logical ranges and no output. Throws ProblemError for a quantisation mode that forward lacks or
/// contradictory lengths, and Error for a row outside its entry.
ForwardRows forward(const FwdArgs& args, std::span<const RowId> rows, const ForwardOptions& options = {},
                    Oracle oracle = Oracle::matrix);

/// O as one plain pass in low precision gives it, for gate G4: un-normalised P rounded to `types.p`, products
/// and sums exact, scale_o·O rounded to `types.o`. rows x hdim_v.
Table forward_low_precision(const FwdArgs& args, std::span<const RowId> rows, const ElementTypes& types,
                            int threads = 0);

} // namespace fmha::reference
