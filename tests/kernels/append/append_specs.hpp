#pragma once

#include "append_problem.hpp"

#include <vector>

namespace fmha::test {

/// Problems that `kernel` can be launched with, which between them have every kind of place, position and layout.
inline std::vector<AppendSpec> specs_for(const KernelConfig& kernel) {
    const Signature& s = kernel.signature;
    const Padding& pad = kernel.algorithm.pad;
    const std::int64_t dq = s.hdim_q - (pad.d != 0 ? 8 : 0), dv = s.hdim_v - (pad.dv != 0 ? 8 : 0);
    std::vector<AppendSpec> specs{
        {.added = 1, .cached = {0, 127, 63}},
        {.batch = 3,
         .heads_q = 6,
         .heads_k = 2,
         .queries = 5,
         .added = 70,
         .cached = {61, 0, 128},
         .has_mask = true},
        {.batch = 1, .queries = 1, .added = 0, .cached = {9}},
        {.batch = 3,
         .heads_q = 2,
         .heads_k = 1,
         .queries = 2,
         .added = 4,
         .cached = {126, 3, 255},
         .slots = true,
         .has_mask = true,
         .rows_outermost = true},
        {.queries = 0, .added = 65, .cached = {200, 31}, .gap = 8},
        {.heads_q = 2, .heads_k = 2, .queries = 66, .added = 3, .cached = {125, 1}, .gap = 3},
        {.batch = 4,
         .heads_q = 8,
         .heads_k = 1,
         .queries = 1,
         .added = 128,
         .cached = {64, 130, 1, 0},
         .slots = true,
         .rows_outermost = true,
         .gap = 5},
    };
    std::uint64_t seed = 1;
    for (AppendSpec& spec : specs) {
        spec.seed = seed++;
        // Every second problem has the kernel's own head dimensions.
        if (seed % 2 == 0) {
            spec.hdim_q = dq;
            spec.hdim_v = dv;
        }
        if (s.rope != Rope::none && seed % 3 != 0)
            spec.rotary_dim = seed % 3 == 1 ? 16 : (s.hdim_q / 2 + 15) / 16 * 16;
        if (seed % 4 == 0) spec.page_size = 256;
        if (!pad.s) spec.queries = (spec.queries + 63) / 64 * 64;
        if (!pad.sk) spec.added = (spec.added + 63) / 64 * 64;
    }
    return specs;
}

} // namespace fmha::test
