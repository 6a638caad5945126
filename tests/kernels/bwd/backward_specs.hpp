#pragma once

#include "backward_problem.hpp"

#include <vector>

namespace fmha::test {

/// Problems that `main` can be launched with, which between them have every kind of lengths, masks and layouts. Lengths lie
/// at the edges of its tiles.
inline std::vector<BackwardSpec> specs_for(const KernelConfig& main) {
    const std::int64_t m0 = main.algorithm.tile.m0, n0 = main.algorithm.tile.n0,
                       most = main.algorithm.max_seq_len_q;
    const std::int64_t hdim = main.signature.hdim_q;
    const std::int64_t narrow = main.algorithm.pad.d != 0 && hdim > 32 ? 8 : 0;
    using enum MaskType;
    std::vector<BackwardSpec> specs{
        {.seqlen_q = {2 * m0 + 1},
         .seqlen_k = {n0 + 1},
         .mask = {bottom_right, -1, 0},
         .sinks = BackwardSinks::normal},
        {.batch = 2,
         .heads = 4,
         .kv_heads = 2,
         .reduce_dk_dv = true,
         .seqlen_q = {m0, 3 * m0 - 1},
         .seqlen_k = {n0, 2 * n0 + 3},
         .hdim_q = hdim - narrow,
         .mask = {top_left, -1, 0},
         .compute_units = 3},
        {.batch = 3,
         .seqlen_q = {m0 + 3, 0, 5},
         .seqlen_k = {n0 + 5, 9, 0},
         .mask = {top_left, 7, 2},
         .sinks = BackwardSinks::normal,
         .bias_rank = 1,
         .rows_outermost = true},
        {.batch = 2,
         .heads = 3,
         .kv_heads = 3,
         .seqlen_q = {2 * m0, 40},
         .seqlen_k = {n0 - 1, n0 + 9},
         .logical_q = {m0 + 2, 0},
         .logical_k = {n0 / 2 + 1, n0 + 2},
         .hdim_v = hdim - narrow,
         .mask = {window_generic, 5, 12},
         .gap = 8,
         .compute_units = 2},
        {.batch = 3,
         .heads = 2,
         .kv_heads = 1,
         .reduce_dk_dv = true,
         .seqlen_q = {m0 + 1, 30, 64},
         .seqlen_k = {40, 2 * n0, 1},
         .logical_k = {0, n0 + 1, 1},
         .cumulative = true,
         .mask = {bottom_right, 20, 0},
         .sinks = BackwardSinks::high,
         .bias_rank = 0,
         .gap = 3},
        {.heads = 1,
         .seqlen_q = {1},
         .seqlen_k = {3 * n0 + 1},
         .hdim_q = hdim - narrow,
         .hdim_v = hdim - narrow,
         .mask = {bottom_right, -1, 0},
         .p_drop = 0.5F,
         .compute_units = 7},
        {.batch = 2,
         .heads = 3,
         .kv_heads = 1,
         .seqlen_q = {50, 33},
         .seqlen_k = {1},
         .mask = {top_left, -1, 0},
         .rows_outermost = true},
    };
    std::uint64_t seed = 1;
    for (BackwardSpec& spec : specs) {
        spec.seed = seed++;
        if (most == 0) continue;
        spec.reduce_dk_dv = false;
        for (std::int64_t& length : spec.seqlen_q) length = std::min(length, most);
    }
    return specs;
}

} // namespace fmha::test
