#pragma once

#include "dispatcher/types/element.hpp"

#include <cstdint>

namespace fmha::harness {

/// Code of element `index` of an array that starts at `base`; packed fp4 has two elements a byte (T-2).
std::uint32_t load_code(const void* base, ElementType type, std::int64_t index);
void store_code(void* base, ElementType type, std::int64_t index, std::uint32_t code);

/// The content of memory that nobody may read or write. `nan` is a NaN where the type has one and its largest
/// magnitude where it has none; `huge` is the largest finite value. The two differ in every type, so that a
/// result that depends on either differs between two runs.
enum class Poison : std::uint8_t { nan, huge };

std::uint32_t poison_code(ElementType type, Poison poison);

} // namespace fmha::harness
