#pragma once

#include "dispatcher/types/enums.hpp"

#include <array>
#include <cstdint>

/// Known mistakes that tests put into the forward program on purpose, to show that the gates can fail.
/// `faulty_context.hpp` makes them.
namespace fmha::targets {

enum class Fault : std::uint8_t {
    last_key_dropped,
    middle_key_dropped,
    mask_right_too_wide,
    mask_left_too_narrow,
    rescale_missed,
    scale_one_percent,
    log2e_omitted,
    value_rows_swapped,
    head_map_plus_one,
    hdim_v_tail_lost,
    lse_without_maximum,
    weights_truncated,
    dropout_byte_off_by_one,
    dropout_scale_omitted,
    bias_row_stride_wrong,
    alibi_neighbour_slope,
    sink_added_twice,
    group_offset_off_by_one,
    soft_cap_after_mask,
    padding_read,
    write_past_end,
    output_unwritten,
};

} // namespace fmha::targets

template <>
struct fmha::EnumTable<fmha::targets::Fault> {
    using enum targets::Fault;
    static constexpr std::array<EnumName<targets::Fault>, 22> names{
        {{last_key_dropped, "last_key_dropped"},
         {middle_key_dropped, "middle_key_dropped"},
         {mask_right_too_wide, "mask_right_too_wide"},
         {mask_left_too_narrow, "mask_left_too_narrow"},
         {rescale_missed, "rescale_missed"},
         {scale_one_percent, "scale_one_percent"},
         {log2e_omitted, "log2e_omitted"},
         {value_rows_swapped, "value_rows_swapped"},
         {head_map_plus_one, "head_map_plus_one"},
         {hdim_v_tail_lost, "hdim_v_tail_lost"},
         {lse_without_maximum, "lse_without_maximum"},
         {weights_truncated, "weights_truncated"},
         {dropout_byte_off_by_one, "dropout_byte_off_by_one"},
         {dropout_scale_omitted, "dropout_scale_omitted"},
         {bias_row_stride_wrong, "bias_row_stride_wrong"},
         {alibi_neighbour_slope, "alibi_neighbour_slope"},
         {sink_added_twice, "sink_added_twice"},
         {group_offset_off_by_one, "group_offset_off_by_one"},
         {soft_cap_after_mask, "soft_cap_after_mask"},
         {padding_read, "padding_read"},
         {write_past_end, "write_past_end"},
         {output_unwritten, "output_unwritten"}}};
    static constexpr auto& aliases = no_aliases<targets::Fault>;
};
