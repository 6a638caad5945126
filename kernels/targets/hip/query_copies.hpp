#pragma once

#include "kernels/targets/hip/backward_plan.hpp"
#include "kernels/targets/hip/tile_copies.hpp"

#include <cstdint>

namespace fmha::hip_target {

/// The ways of Q and dO of a query tile to LDS: at once, or through registers, which hold them a tile ahead.
template <class Block>
class QueryCopies {
    using Plan = BackwardPlan;
    using Copies = TileCopies<Block, &Plan::staging>;

  public:
    FMHA_DEVICE explicit QueryCopies(const Block& block)
        : block_(block), query_(block), query_depth_(block), d_o_(block), d_o_depth_(block) {}

    /// How the rows of a head can be read, for all of its tiles; `values_near` is what is known of their values (RowStreams::rows_near).
    FMHA_DEVICE void look_at_rows(const kernels::Matrix& q, const kernels::Matrix& d_o, bool values_near) {
        are_ahead_ = values_near && reads_units<&Plan::query>(q) && reads_units<&Plan::d_o>(d_o);
    }
    FMHA_DEVICE bool are_ahead() const { return are_ahead_; }
    FMHA_DEVICE void copy_query(int stage, const kernels::Matrix& matrix, std::int64_t row0,
                                std::int64_t col0, Phase phase) {
        copy<&Plan::query, &Plan::query_depth>(query_, query_depth_, stage, matrix, row0, col0, phase);
    }
    FMHA_DEVICE void copy_gradient(int stage, const kernels::Matrix& matrix, std::int64_t row0,
                                   std::int64_t col0, Phase phase) {
        copy<&Plan::d_o, &Plan::d_o_depth>(d_o_, d_o_depth_, stage, matrix, row0, col0, phase);
    }

  private:
    Block block_;
    Copies query_, query_depth_, d_o_, d_o_depth_; ///< each has registers for what it reads ahead
    bool are_ahead_ = false;

    template <auto Operand>
    FMHA_DEVICE bool reads_units(const kernels::Matrix& matrix) const {
        return query_.template reads_units<Operand>(matrix, 0, 0, block_.template piece<Operand>().columns);
    }
    /// Rows of Q or dO, in one image or in one for either side of a product.
    template <auto Columns, auto Depth>
    FMHA_DEVICE void copy(Copies& by_column, Copies& by_depth, int stage, const kernels::Matrix& matrix,
                          std::int64_t row0, std::int64_t col0, Phase phase) {
        const OperandPlan& columns = block_.template piece<Columns>();
        const OperandPlan& depth = block_.template piece<Depth>();
        const bool by_element = phase == Phase::whole && block_.plan().staging.read_ahead;
        const Units known = phase != Phase::whole ? Units::aligned
                            : by_element          ? Units::elements
                                                  : Units::unknown;
        by_column.template copy_step<Columns>(columns.image.offset + stage * columns.stage, matrix, row0,
                                              col0, 0, columns.depth, phase, known);
        if (depth.image.offset != columns.image.offset)
            by_depth.template copy_step<Depth>(depth.image.offset + stage * depth.stage, matrix, col0, row0,
                                               0, depth.depth, phase, known);
    }
};

} // namespace fmha::hip_target
