#pragma once

#include "dispatcher/system/streams.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fmha::cli {

/// The whole content of a file, or of standard input for "-"; gzip is recognised by its first bytes and
/// unpacked. Throws InputError for a file that cannot be read, a directory, and a damaged gzip stream.
std::string input_text(const std::string& path);

/// The text that gzip packed, in one member or several. zlib is given at most `piece` bytes at a time, of which it takes less than 4 GiB. Throws
/// InputError, with `path`, for a damaged stream and for more than `most` bytes of text.
std::string unpacked(std::string_view packed, const std::string& path,
                     std::size_t piece = std::size_t{1} << 30,
                     std::uint64_t most = system::most_bytes_of_input);

} // namespace fmha::cli
