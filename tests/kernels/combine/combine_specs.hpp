#pragma once

#include "combine_problem.hpp"

#include <vector>

namespace fmha::test {

/// Problems that `kernel` can be launched with, which between them have every kind of rows and layout.
inline std::vector<CombineSpec> specs_for(const KernelConfig& kernel) {
    const bool any_rows = kernel.algorithm.pad.s, any_channels = kernel.algorithm.pad.dv != 0;
    const std::int64_t hdim =
        kernel.signature.hdim_v - (any_channels && kernel.signature.hdim_v > 32 ? 8 : 0);
    const float scale = kernel.signature.do_fp8_static_quant ? 32.0F : 1.0F;
    std::vector<CombineSpec> specs{
        {.seqlen_q = {11}, .splits = 1},
        {.heads = 3, .seqlen_q = {8}, .splits = 128, .sinks = Sinks::normal},
        {.batch = 3, .seqlen_q = {5, 0, 17}, .splits = 4, .logs = Logs::some_empty, .sinks = Sinks::normal},
        {.batch = 2, .seqlen_q = {1}, .splits = 2, .logs = Logs::far, .rows_outermost = true},
        {.heads = 3, .seqlen_q = {9}, .splits = 8, .logs = Logs::wide, .sinks = Sinks::absent, .gap = 8},
        {.seqlen_q = {7}, .splits = 5, .logs = Logs::equal, .gap = 3},
        {.batch = 2, .seqlen_q = {4, 6}, .splits = 3, .logs = Logs::all_empty, .sinks = Sinks::normal},
        {.heads = 1, .seqlen_q = {10}, .splits = 33, .logs = Logs::last_only},
        {.seqlen_q = {3}, .splits = 7, .sinks = Sinks::above, .rows_outermost = true, .gap = 4},
        // One row a head: heads share blocks, and the last block is not full.
        {.batch = 2,
         .heads = 11,
         .seqlen_q = {1},
         .splits = 21,
         .logs = Logs::some_empty,
         .sinks = Sinks::normal},
        {.batch = 3, .heads = 9, .seqlen_q = {1, 0, 1}, .splits = 17, .rows_outermost = true},
    };
    std::uint64_t seed = 1;
    for (CombineSpec& spec : specs) {
        spec.hdim_v = hdim;
        spec.scale_o = scale;
        spec.seed = seed++;
        if (any_rows) continue;
        for (std::int64_t& length : spec.seqlen_q) length = (length + 15) / 16 * 16;
    }
    return specs;
}

} // namespace fmha::test
