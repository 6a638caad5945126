#pragma once

#include "kernels/targets/hip/plan_types.hpp"

#include <cstdint>

namespace fmha::hip_target {

/// How dS comes to LDS, where all waves read it as the left operand of dQ.
enum class GradientLines : std::uint8_t {
    queries,        ///< a line is a query with its keys
    queries_paired, ///< the same; neighbouring lanes put the keys of a word together
    keys,           ///< a line is a key with its queries, which is read transposed
};

/// Where one value a query of a tile lies in LDS, in two stages. `stage`, the bytes from one to the next, is 0 where it comes
/// straight to registers.
struct StreamedRowsPlan {
    std::int32_t offset = 0, stage = 0;
};

/// The plan of backward's main stage. Scores are computed transposed, a row of them being a key: a wave owns keys, whose
/// dK and dV it sums up in registers, with Pᵀ and dSᵀ as left operands that stay in registers too. dQ needs all keys of a
/// query, and gets dS through LDS. Where a wave has no room for all channels, several waves have the same keys and scores, and
/// channels of their own.
struct BackwardPlan : BlockShape {
    RowPlan rows; ///< of queries, which are columns of scores
    StreamedRowsPlan normalisers, deltas;
    std::int8_t column_slots = 0; ///< queries of a fragment that a lane has
    std::int8_t slot_of_column[16] = {};
    ProductPlan scores;          ///< Sᵀ = K·Qᵀ
    ProductPlan score_gradients; ///< dPᵀ = V·dOᵀ
    ProductPlan value_gradients; ///< dV += Pᵀ·dO
    ProductPlan key_gradients;   ///< dK += dSᵀ·Q
    ProductPlan query_gradients; ///< dQ += dS·K
    LeftOperandPlan key, value, gradients;
    OperandPlan query, d_o;             ///< right operands whose columns are queries
    OperandPlan query_depth, d_o_depth; ///< right operands whose depth is queries
    OperandPlan key_depth;              ///< right operand whose depth is keys
    /// Registers of `key_depth` a thread; 1 where it is read from LDS.
    std::int16_t key_depth_words = 1;
    bool key_depth_in_registers = false;
    GradientLines gradient_lines = GradientLines::queries;
    /// Bytes from one stage of dS in LDS to the other. 0: one stage, whose part of dQ is added before the next tile begins.
    std::int32_t gradient_stage = 0;
    bool keeps_place = false;   ///< the place of a head's dQ stays in registers
    bool halves_differ = false; ///< one half of a block's waves adds that part behind the next tile's scores
    std::int16_t score_words = 1;      ///< of 16 bits
    std::int16_t score_byte_words = 1; ///< of bytes
    WeightPlan weights;
    StagingPlan staging;
    Image random; ///< the random bytes of a score tile: a line is a key with its queries
};

} // namespace fmha::hip_target
