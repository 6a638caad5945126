#pragma once

#include "harness/cases/case.hpp"
#include "harness/cases/relative_text.hpp"

#include <cstdint>

namespace fmha::harness {

/// A small case of the family of `plain`, drawn from all of its fields, a function of `seed` (which is the seed of its data
/// too) and of the tiles of `planned_tile`: half of its lengths lie within one of an edge of the tile of the kernel that is planned
/// for it. Nearly all of them are legal; a few break a rule of the specification, or find no kernel. It is named by how it differs
/// from `plain`.
Case random_case(const Case& plain, std::uint64_t seed, const TilePlanner& planned_tile);

} // namespace fmha::harness
