#pragma once

namespace fmha::arch {

/// What commands and targets on the processor plan for when nobody names an architecture.
inline constexpr const char* usual_arch = "gfx950";

} // namespace fmha::arch
