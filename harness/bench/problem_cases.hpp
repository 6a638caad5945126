#pragma once

#include "harness/cases/case.hpp"
#include "harness/catalogue/witness.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace fmha::harness {

/// The sizes of a problem in the form of upstream's `--problems`: "b,h,s,d" or "b,hq,hk,sq,sk,d".
struct ProblemSizes {
    std::int64_t batch = 0, nhead_q = 0, nhead_k = 0, seqlen_q = 0, seqlen_k = 0, hdim = 0;
    friend bool operator==(const ProblemSizes&, const ProblemSizes&) = default;
};

/// "2,8,1024,128;1,32,8,1,8192,128". Throws InputError for another count of numbers, and for numbers that are not positive.
std::vector<ProblemSizes> parse_problems(std::string_view text);

/// For each of `problems` and each combination of features that kernels of `list` with its head dimension have, a case with these
/// sizes, without padding between rows; each case once. Split-KV gets one for each of `num_splits`. Combinations that a
/// rule forbids are left out.
std::vector<Case> problem_cases(std::span<const ListedKernel> list, std::span<const ProblemSizes> problems,
                                std::span<const std::int64_t> num_splits);

} // namespace fmha::harness
