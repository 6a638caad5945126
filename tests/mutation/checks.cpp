#include "tests/mutation/checks.hpp"

#include <array>

namespace fmha::test {

std::span<const Check> checks() {
    static constexpr std::array<Check, 25> all{{{"mask", mask_is_right},
                                                {"key tiles", key_tiles_are_right},
                                                {"tiles of teams", tiles_of_teams_are_right},
                                                {"query tiles", query_tiles_are_right},
                                                {"alibi", alibi_is_right},
                                                {"grids", grids_are_right},
                                                {"rows", rows_are_right},
                                                {"key jobs", key_jobs_are_right},
                                                {"packed heads", packed_heads_are_right},
                                                {"lengths", lengths_are_right},
                                                {"cache tiles", cache_tiles_are_right},
                                                {"counted tiles", counted_tiles_are_right},
                                                {"small floats", small_floats_are_right},
                                                {"matrices", matrices_are_right},
                                                {"descales", descales_are_right},
                                                {"token descales", token_descales_are_right},
                                                {"combined sinks", combined_sinks_are_right},
                                                {"combined splits", combined_splits_are_right},
                                                {"sink gradient", sink_gradient_is_right},
                                                {"lse", lse_is_right},
                                                {"appended keys", appended_keys_are_right},
                                                {"items", ws_items_are_right},
                                                {"items of windows", ws_windows_are_right},
                                                {"head rows", head_rows_are_right},
                                                {"score units", score_units_are_right}}};
    return all;
}

} // namespace fmha::test
