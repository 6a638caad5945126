#pragma once

#include "dispatcher/types/args.hpp"
#include "dispatcher/types/enums.hpp"

namespace fmha {

/// Whether tensor maps can have the strides and extents of Q, K and V: channels next to each other, rows apart by more than 0 bytes, heads
/// and entries by 0, where they share memory, or more, and so on. Of addresses and multiples `Problem::tensor_alignment` speaks,
/// and of V by column nothing. Of pages in vectors only Q counts: no kernel maps them. A tensor without rows needs no map. A test compares this with the maps that launches get.
bool tensor_maps_have(const FwdArgs& args, VLayout v_layout);
bool tensor_maps_have(const PagedKvArgs& args, VLayout v_layout);
bool tensor_maps_have(const BatchPrefillArgs& args, VLayout v_layout);

} // namespace fmha
