#pragma once

#include "dispatcher/types/enums.hpp"
#include "dispatcher/types/fwd_args.hpp"
#include "dispatcher/types/kernel_config.hpp"
#include "kernels/targets/host/host_target.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

/// Known mistakes, put into the forward program on purpose. For tests that show that the gates can fail;
/// nothing that a user runs links this library.
namespace fmha::host_target {

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

struct FaultInfo {
    Fault fault;
    std::string_view says;  ///< what the kernel does wrong
    std::string_view needs; ///< what a launch must have for the fault to change anything
};

/// Every fault once, in order of declaration.
std::span<const FaultInfo> fault_catalogue();

/// `run_fwd` with one mistake in the kernel. `write_past_end` writes the element behind the last logical one
/// of O, which must be the caller's memory (stride padding or a guard zone).
void run_fwd_with_fault(const KernelConfig& config, const FwdArgs& args, Fault fault,
                        const RunOptions& options = {});

} // namespace fmha::host_target

template <>
struct fmha::EnumTable<fmha::host_target::Fault> {
    using enum host_target::Fault;
    static constexpr std::array<EnumName<host_target::Fault>, 22> names{
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
    static constexpr auto& aliases = no_aliases<host_target::Fault>;
};
