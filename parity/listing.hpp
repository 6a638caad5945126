#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace fmha::parity {

/// A golden list of names as text that can be reviewed: kernels come from tiles times feature combinations,
/// so the file holds each distinct set of endings once and one line for each beginning, with the number of
/// its set. A dropped tile is a dropped line; a changed rule is a change in a set of endings.
///
///     endings 1
///       vr_npad_logits_nbias_mask_lse_dropout_skip_nqscale_ntrload_sink_gfx9.cpp
///       …
///     names
///     fmha_fwd_d32_fp16_batch_b128x64x16x32x32x32_r4x1x1_r4x1x1_w32x32x16_w32x32x16_qr 1
///
/// `names` need not be sorted and may not repeat. The text depends on the set alone.
std::string write_listing(std::vector<std::string> names);

/// The names of a listing, sorted. Throws InputError with `file` and line for text that is none.
std::vector<std::string> parse_listing(std::string_view text, const std::string& file);

} // namespace fmha::parity
