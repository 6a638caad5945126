#pragma once

#include <string>

namespace fmha::harness {

/// The whole file. InputError when it is missing, a directory or unreadable.
std::string read_text_file(const std::string& path);

} // namespace fmha::harness
