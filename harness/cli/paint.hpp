#pragma once

#include <string>
#include <string_view>

namespace fmha::cli {

/// `text` with colours for its verdicts, line by line: lines that begin with FAILED, CRASHED, … or RED, with GREEN, with SMALLER.
/// As it is unless `on`.
std::string painted(std::string_view text, bool on);

/// Whether a stream may have colours: it is a terminal, and the environment's NO_COLOR (nullptr: not set) is empty.
bool wants_colours(bool terminal, const char* no_color);

} // namespace fmha::cli
