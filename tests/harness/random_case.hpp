#pragma once

#include "harness/cases/case.hpp"

namespace fmha::harness::test {

/// A small valid forward case drawn from all features that may be combined, a function of `seed` alone.
Case random_case(std::uint64_t seed);

} // namespace fmha::harness::test
