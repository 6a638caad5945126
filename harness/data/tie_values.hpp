#pragma once

#include "dispatcher/types/element.hpp"
#include "harness/data/random.hpp"

#include <cstdint>

/// The numbers behind the fills `ties` and `weight_ties`: rows whose exact value lies half way between two values of the
/// output's type, and weights that do between two of P's type. Only rounding to even gives the expected bits (T-5).
namespace fmha::harness {

/// V of `ties` for key j and channel c; `random` is that of the entry and head. Even keys have one value and odd keys
/// another, whose mean is a tie of type `o`: with Q and K of zeros, and as many even as odd visible keys, that mean is O.
/// Q, K and V need `o` to have at most 11 significant bits.
double tied_value(const Random& random, std::int64_t j, std::int64_t c, ElementType v, ElementType o);

/// The weights of `weight_ties` are 1 for every fourth key, beginning with key 0, and 2^−exponent for the others: half the
/// smallest value of P's type after the pre-scale that kernels use for it (T-6). 0 where exp2 cannot give such a weight: fp32
/// has no cast, and half the smallest bf16 lies below fp32's normal range.
int tie_weight_exponent(ElementType p);
constexpr bool has_weight_one(std::int64_t j) {
    return j % 4 == 0;
}

/// Q and K of `weight_ties` in channel c. Their product is the weight's exponent, at softmax scale ln 2.
double weight_tie_query(int exponent, std::int64_t c);
double weight_tie_key(int exponent, std::int64_t j, std::int64_t c);
/// V of `weight_ties`: one small value for all keys of weight 1, and a large one for the others, whose weights must become 0.
double weight_tie_value(const Random& random, std::int64_t j, std::int64_t c, ElementType v);

} // namespace fmha::harness
