#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fmha::parity {

/// The part of a name that says which tile it has: up to its last token with extents (`b128x64x…`), or its first four
/// tokens when there are none.
std::string_view tile_beginning(std::string_view name);

/// A golden list of names as text that can be reviewed: kernels come from tiles times feature combinations,
/// so the file has one line for each beginning of names, with the letter of its set of endings, and each
/// distinct set once, as a pattern (pattern.hpp). A dropped tile is a dropped line; a changed rule is a
/// changed pattern.
///
///     A _qr_async_vr_psskddv(_logits_nbias|_nlogits(_alibi|_nbias))(_mask|_nmask)…_gfx950.cpp
///
///     fmha_fwd_d32_fp16_group_b128x64x16x32x32x32_r4x1x1_r4x1x1_w32x32x16_w32x32x16 A
///
/// The text depends on the set of names alone.
std::string write_listing(std::vector<std::string> names);

/// The names of a listing, sorted. Throws InputError with `file` and line for text that is none.
std::vector<std::string> parse_listing(std::string_view text, const std::string& file);

} // namespace fmha::parity
