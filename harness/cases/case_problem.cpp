#include "harness/cases/case_problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace fmha::harness {
namespace {

void check_argument(bool good, const char* rule, const char* field, double value, const char* sentence) {
    if (!good)
        throw ProblemError(rule, field, fmt::format("{}", value),
                           fmt::format("{} is {}; {}", field, value, sentence));
}

/// Rules about values that a problem does not hold because no kernel depends on them.
void check_arguments(const FwdCase& c) {
    check_argument(c.p_drop >= 0.0 && c.p_drop < 1.0, "D-1", "p_drop", c.p_drop, "it must be in [0, 1)");
    check_argument(std::isfinite(c.logits_soft_cap) && c.logits_soft_cap >= 0.0, "C-1", "logits_soft_cap",
                   c.logits_soft_cap, "it must be finite and above 0, or 0 for none");
    check_argument(std::isfinite(c.scale_s), "H-3", "scale_s", c.scale_s, "it must be finite");
    const bool scales_output = c.data_type == DataType::fp8 || c.data_type == DataType::bf8;
    check_argument(std::isfinite(c.scale_o) && (scales_output || c.scale_o == 1.0), "O-1", "scale_o",
                   c.scale_o, "only fp8 and bf8 outputs are scaled, by a finite number");
    // In group mode an entry begins where the one before it ends. Batch mode is the problem's to check.
    if (c.data_type == DataType::mxfp4 && c.mode == Mode::group)
        for (const std::int64_t length : c.physical_k.empty() ? c.seqlen_k : c.physical_k)
            check_argument(
                length % 2 == 0, "T-2", c.physical_k.empty() ? "seqlen_k" : "physical_k",
                static_cast<double>(length),
                "packed fp4 values of V run along the keys, so that every entry begins at an even key");
    if (c.qscale == QScale::blockscale) {
        check_argument(c.block_scale_q > 0, "Q-2", "block_scale_q", static_cast<double>(c.block_scale_q),
                       "it must be positive");
        check_argument(c.block_scale_k > 0, "Q-2", "block_scale_k", static_cast<double>(c.block_scale_k),
                       "it must be positive");
    }
}

std::int64_t longest(const std::vector<std::int64_t>& logical, const std::vector<std::int64_t>& physical) {
    return std::ranges::max(physical.empty() ? logical : physical);
}

bool gives(LengthForm form, LengthForm wanted) {
    return form == wanted || form == LengthForm::both;
}

} // namespace

Problem to_problem(const FwdCase& c, std::string_view arch) {
    check_arguments(c);
    const bool group = c.mode == Mode::group;
    Presence presence;
    presence.seqstart_q = presence.seqstart_k = group;
    presence.seqlen_q = gives(c.length_form_q, LengthForm::seqlen);
    presence.seqlen_k = gives(c.length_form_k, LengthForm::seqlen);
    presence.cu_seqlen_q = gives(c.length_form_q, LengthForm::cu_seqlen);
    presence.cu_seqlen_k = gives(c.length_form_k, LengthForm::cu_seqlen);

    ProblemBuilder builder;
    builder.api_family(ApiFamily::fwd)
        .gfx_arch(arch)
        .data_type(c.data_type)
        .group_mode(group)
        .dims(c.hdim_q, c.hdim_v, c.batch, longest(c.seqlen_q, c.physical_q),
              longest(c.seqlen_k, c.physical_k))
        .nheads(c.nhead_q, c.nhead_k)
        .variable_lengths(presence)
        .mask_type(c.mask)
        .window(c.window_left, c.window_right)
        .sink_size(c.sink_size)
        .bias_type(c.bias)
        .lse(c.lse)
        .logits_soft_cap(c.logits_soft_cap > 0.0)
        .dropout(c.p_drop > 0.0)
        .store_randval(c.store_randval)
        .v_rowmajor(c.v_layout == VLayout::row)
        .sink_logit(c.sink_logits != SinkLogits::none)
        .qscale_type(c.qscale)
        .min_seqlen_q(c.min_seqlen_q);
    // Entries may all be empty, but a launch needs a positive bound (N-2, N-4).
    if (group)
        builder.max_seqlen(std::max<std::int64_t>(1, std::ranges::max(c.seqlen_q)),
                           std::ranges::max(c.seqlen_k));
    return builder.build();
}

} // namespace fmha::harness
