#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fmha::harness {

/// Every combination of the values that the ranges of "field=value,…" stand for, the last range fastest; the text itself when it
/// has none. A range is a value "first:last:xN", which multiplies by N, or "first:last:+N", which adds N, up to `last`:
/// "seqlen=32:2048:x2" is 32, 64, … 2048. Throws InputError that names the range and its mistake, and for a text or a part between
/// commas that is empty.
std::vector<std::string> expand_ranges(std::string_view text);

} // namespace fmha::harness
