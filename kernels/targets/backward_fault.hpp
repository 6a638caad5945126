#pragma once

#include "dispatcher/types/enums.hpp"

#include <array>
#include <cstdint>

/// The mistakes that the programs of backward can be given (faulty_backward.hpp).
namespace fmha::targets {

enum class BackwardFault : std::uint8_t {
    delta_factor_omitted,      ///< D is Δ
    delta_factor_squared,      ///< D is p_undrop² · Δ
    delta_last_channel_lost,   ///< Δ leaves the last channel out
    d_one_row_down,            ///< D is stored one row below its place
    d_unwritten,               ///< the last row of D is not stored
    last_entry_forgotten,      ///< the first stage takes the last entry for empty
    sink_exponent_reversed,    ///< the sink's share is exp(LSE − sink)
    sink_log2e_omitted,        ///< the sink's share is a power of two
    sink_gradient_positive,    ///< d_sink has the wrong sign
    scale_one_percent,         ///< logits are 1 % too large
    log2e_omitted,             ///< weights are powers of two
    gradient_scale_omitted,    ///< dQ and dK are not scaled
    gradient_scale_squared,    ///< dQ and dK are scaled twice
    value_rescale_omitted,     ///< dV is not divided by p_undrop
    score_rescale_omitted,     ///< dS is not divided by p_undrop
    head_map_plus_one,         ///< every query head reads the next key/value head
    mask_right_too_wide,       ///< every row sees one key too many on the right
    mask_left_too_narrow,      ///< every row misses the first key of its window
    mask_edge_transposed,      ///< rows and keys of the mask change places
    alibi_neighbour_slope,     ///< every head uses the slope of the next
    bias_row_stride_wrong,     ///< the bias row stride is one element too small
    bytes_transposed,          ///< random bytes of keys × rows
    bytes_of_the_next_square,  ///< random bytes of 32 rows further down
    stored_bytes_one_row_down, ///< stored bytes of the next row
    delta_omitted,             ///< dS = p · dP
    delta_added,               ///< dS = p · (dP + D)
    weights_omitted,           ///< dS = dP − D, and dV = dO
    dp_not_dropped,            ///< dP of dropped keys stays
    weights_not_dropped,       ///< dV gets dropped keys too
    lse_in_base_two,           ///< LSE is subtracted as if it were in base 2
    normaliser_omitted,        ///< nothing is subtracted from the logits
    dq_overwritten,            ///< a partial sum of dQ replaces the sum there
    dq_added_twice,            ///< a partial sum of dQ is added twice
    split_forgotten,           ///< every partial sum goes to the first split
    split_uninitialised,       ///< splits behind the first are not written, so that older contents are summed
    dk_last_row_unwritten,     ///< the last key of dK is not stored
    dv_one_row_down,           ///< dV is stored one key below its place
    dbias_only_where_seen,     ///< tiles that the mask hides are not written to dBias
    dbias_one_key_right,       ///< dBias is stored one key right of its place
    group_offset_off_by_one,   ///< keys of later entries start one row early
    value_last_channel_lost,   ///< the last channel of V is taken as 0
    query_tile_skipped,        ///< the first query tile that sees a key tile is not added to dV
    key_tile_of_dq_first,      ///< dQ of every key tile is made with the keys of the first tile, one row down
    last_split_dropped,        ///< the last split of dQ is not added
    first_split_twice,         ///< the first split of dQ takes the place of the second
    dq_unwritten,              ///< the last row of dQ is not stored
    reduced_head_forgotten,    ///< reduced dK and dV leave the last query head of a KV head out
    reduced_head_twice,        ///< reduced dK and dV have the first query head in the place of the second
    reduced_heads_strided,     ///< reduced dK and dV are sums over heads that lie nhead_k apart
    dbias_rescale_omitted,     ///< dBias alone is not divided by p_undrop, as in upstream's reference
    key_tile_dropped,          ///< dQ leaves out every key tile but the first
};

} // namespace fmha::targets

template <>
struct fmha::EnumTable<fmha::targets::BackwardFault> {
    using enum targets::BackwardFault;
    static constexpr std::array<EnumName<targets::BackwardFault>, 51> names{
        {{delta_factor_omitted, "delta_factor_omitted"},
         {delta_factor_squared, "delta_factor_squared"},
         {delta_last_channel_lost, "delta_last_channel_lost"},
         {d_one_row_down, "d_one_row_down"},
         {d_unwritten, "d_unwritten"},
         {last_entry_forgotten, "last_entry_forgotten"},
         {sink_exponent_reversed, "sink_exponent_reversed"},
         {sink_log2e_omitted, "sink_log2e_omitted"},
         {sink_gradient_positive, "sink_gradient_positive"},
         {scale_one_percent, "scale_one_percent"},
         {log2e_omitted, "log2e_omitted"},
         {gradient_scale_omitted, "gradient_scale_omitted"},
         {gradient_scale_squared, "gradient_scale_squared"},
         {value_rescale_omitted, "value_rescale_omitted"},
         {score_rescale_omitted, "score_rescale_omitted"},
         {head_map_plus_one, "head_map_plus_one"},
         {mask_right_too_wide, "mask_right_too_wide"},
         {mask_left_too_narrow, "mask_left_too_narrow"},
         {mask_edge_transposed, "mask_edge_transposed"},
         {alibi_neighbour_slope, "alibi_neighbour_slope"},
         {bias_row_stride_wrong, "bias_row_stride_wrong"},
         {bytes_transposed, "bytes_transposed"},
         {bytes_of_the_next_square, "bytes_of_the_next_square"},
         {stored_bytes_one_row_down, "stored_bytes_one_row_down"},
         {delta_omitted, "delta_omitted"},
         {delta_added, "delta_added"},
         {weights_omitted, "weights_omitted"},
         {dp_not_dropped, "dp_not_dropped"},
         {weights_not_dropped, "weights_not_dropped"},
         {lse_in_base_two, "lse_in_base_two"},
         {normaliser_omitted, "normaliser_omitted"},
         {dq_overwritten, "dq_overwritten"},
         {dq_added_twice, "dq_added_twice"},
         {split_forgotten, "split_forgotten"},
         {split_uninitialised, "split_uninitialised"},
         {dk_last_row_unwritten, "dk_last_row_unwritten"},
         {dv_one_row_down, "dv_one_row_down"},
         {dbias_only_where_seen, "dbias_only_where_seen"},
         {dbias_one_key_right, "dbias_one_key_right"},
         {group_offset_off_by_one, "group_offset_off_by_one"},
         {value_last_channel_lost, "value_last_channel_lost"},
         {query_tile_skipped, "query_tile_skipped"},
         {key_tile_of_dq_first, "key_tile_of_dq_first"},
         {last_split_dropped, "last_split_dropped"},
         {first_split_twice, "first_split_twice"},
         {dq_unwritten, "dq_unwritten"},
         {reduced_head_forgotten, "reduced_head_forgotten"},
         {reduced_head_twice, "reduced_head_twice"},
         {reduced_heads_strided, "reduced_heads_strided"},
         {dbias_rescale_omitted, "dbias_rescale_omitted"},
         {key_tile_dropped, "key_tile_dropped"}}};
    static constexpr auto& aliases = no_aliases<targets::BackwardFault>;
};
