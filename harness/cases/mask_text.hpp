#pragma once

#include "harness/cases/case.hpp"

#include <string>
#include <string_view>

namespace fmha::harness {

/// The mask of a case as text (M-5).
struct MaskText {
    MaskType type = MaskType::no_mask;
    std::int64_t left = -1, right = -1, sink = 0;
    friend bool operator==(const MaskText&, const MaskText&) = default;
};

/// The texts that `parse_mask` takes, for messages.
inline constexpr std::string_view mask_grammar = "a mask text: \"0\", \"t\", \"b\", \"t:l,r\", \"b:l,r\", "
                                                 "\"t:l,r,sinks\", \"b:l,r,sinks\", \"xt:w\", \"xb:w\" or "
                                                 "\"g:y,x\"";

/// Reads a text of M-5 into `mask`; false for anything else. `g:y,x` becomes window_generic with left = y − 1
/// and right = x − 1 (M-7).
bool parse_mask(std::string_view text, MaskText& mask);

/// The canonical text: `parse_mask(mask_text(m))` gives m back.
std::string mask_text(const MaskText& mask);

} // namespace fmha::harness
