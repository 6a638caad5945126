#pragma once

#include <span>
#include <string_view>

namespace fmha::test {

/// A question to a function of the programs by itself, where what whole cases write does not tell: a tile too many, a block
/// without work, a code that no case has. The answer is counted out from the definition.
struct Check {
    std::string_view name;
    bool (*right)();
};

/// All of them.
std::span<const Check> checks();

/// Each for itself.
bool mask_is_right();
bool key_tiles_are_right();
bool tiles_of_teams_are_right();
bool query_tiles_are_right();
bool alibi_is_right();
bool grids_are_right();
bool rows_are_right();
bool key_jobs_are_right();
bool packed_heads_are_right();
bool lengths_are_right();
bool cache_tiles_are_right();
bool counted_tiles_are_right();
bool small_floats_are_right();
bool matrices_are_right();
bool descales_are_right();
bool token_descales_are_right();
bool combined_sinks_are_right();
bool combined_splits_are_right();
bool sink_gradient_is_right();
bool lse_is_right();
bool appended_keys_are_right();
bool ws_items_are_right();
bool ws_windows_are_right();
bool head_rows_are_right();
bool score_units_are_right();

} // namespace fmha::test
