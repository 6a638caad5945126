#include "kernels/targets/host/faults/fault.hpp"

#include "dispatcher/types/error.hpp"
#include "kernels/programs/programs.hpp"
#include "kernels/targets/cannot_launch.hpp"
#include "kernels/targets/faulty_context.hpp"
#include "kernels/targets/host/executor.hpp"

namespace fmha::host_target {

std::span<const FaultInfo> fault_catalogue() {
    using enum Fault;
    static constexpr std::array<FaultInfo, 22> catalogue{{
        {last_key_dropped, "the last key of every entry is not attended to", "the last key is visible"},
        {middle_key_dropped, "key seqlen_k / 2 of every entry is not attended to", "that key is visible"},
        {mask_right_too_wide, "every row sees one key too many on the right", "a mask with a right bound"},
        {mask_left_too_narrow, "every row misses the first key of its window", "a mask with a left bound"},
        {rescale_missed, "the output is not rescaled when the second key tile raises the maximum",
         "a maximum that rises in the second key tile"},
        {scale_one_percent, "the softmax scale is 1 % too large", "any scores"},
        {log2e_omitted, "the exponential is taken in base 2 without the factor log2 e", "any scores"},
        {value_rows_swapped, "every key has the value of the next one", "two visible keys"},
        {head_map_plus_one, "every query head reads the next key/value head", "nhead_k > 1"},
        {hdim_v_tail_lost, "the last channel of V is taken as zero", "any values"},
        {lse_without_maximum, "LSE is stored without the row maximum", "a stored LSE"},
        {weights_truncated, "P is cast by truncation", "a P type of 16 or 8 bits"},
        {dropout_byte_off_by_one, "every row uses the random bytes of the next square of rows", "dropout"},
        {dropout_scale_omitted, "the output is not divided by the keep probability", "dropout"},
        {bias_row_stride_wrong, "the bias row stride is one element too small", "elementwise bias, two rows"},
        {alibi_neighbour_slope, "every head uses the ALiBi slope of the next", "ALiBi with nhead_q > 1"},
        {sink_added_twice, "the sink logit enters the total twice", "sink logits"},
        {group_offset_off_by_one, "keys and values of later entries start one row early",
         "group mode, two entries"},
        {soft_cap_after_mask, "hidden scores are soft-capped and become finite", "soft-cap and hidden keys"},
        {padding_read, "an element behind a row of K enters with factor 0", "NaN in the row padding of K"},
        {write_past_end, "one element behind the last row of O is written", "guarded memory there"},
        {output_unwritten, "the last row of every head of O is not stored", "any output"},
    }};
    return catalogue;
}

void run_fwd_with_fault(const KernelConfig& config, const FwdArgs& args, Fault fault,
                        const RunOptions& options) {
    if (const auto reason = cannot_execute(config)) throw UnsupportedInvocation(*reason);
    if (const auto reason = targets::cannot_launch(config, args)) throw UnsupportedInvocation(*reason);
    using Faulty = targets::FaultyContext<HostContext>;
    run_blocks(kernels::Program<KernelFamily::fwd>{}, config, args, options,
               [&](std::vector<TileVisit>* trace) { return Faulty(fault, config, trace); });
}

} // namespace fmha::host_target
