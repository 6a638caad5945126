#pragma once

#include <string>
#include <string_view>

namespace fmha::cli {

/// `text` with colours for its verdicts, line by line: lines that begin with FAILED, CRASHED, … or RED, with GREEN, with SMALLER.
/// As it is unless `on`.
std::string painted(std::string_view text, bool on);

/// Whether a stream takes orders such as colours and moves of the cursor: it is a terminal, and the environment's TERM (nullptr: not set)
/// does not call it dumb.
bool takes_orders(bool terminal, const char* term);

/// Whether a stream may have colours: it takes orders, and the environment's NO_COLOR (nullptr: not set) is empty.
bool wants_colours(bool orders, const char* no_color);

} // namespace fmha::cli
