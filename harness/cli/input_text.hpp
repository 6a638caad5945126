#pragma once

#include <string>

namespace fmha::cli {

/// The whole content of a file, or of standard input for "-"; gzip is recognised by its first bytes and
/// unpacked. Throws InputError for a file that cannot be read, a directory, and a damaged gzip stream.
std::string input_text(const std::string& path);

} // namespace fmha::cli
