#pragma once

#include <iosfwd>
#include <string>

namespace fmha::cli {

/// `fmha plan --policy ck --upstream-problems`: reads upstream problems from `text` (JSON lines, an array, or
/// an object with "cases") and writes one line each with the kernel that upstream's generated API selects. Throws
/// InputError that names `source`, the line or element, the key and the value.
void plan_upstream_problems(const std::string& text, const std::string& source, bool json, std::ostream& out);

} // namespace fmha::cli
