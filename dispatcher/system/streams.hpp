#pragma once

#include <cstdint>
#include <istream>
#include <string>

namespace fmha::system {

/// Of a file (`read_file`), a stream, or what either unpacks to. A device or a pipe without an end would take all memory.
inline constexpr std::uint64_t most_bytes_of_input = std::uint64_t{1} << 30U;

/// The InputError about an input of more than `most` bytes.
[[noreturn]] void refuse_size(const std::string& name, std::uint64_t most = most_bytes_of_input);

/// A stream to its end. Throws InputError with its `name` when it has more than `most` bytes, of which it keeps no more.
std::string read_stream(std::istream& stream, const std::string& name,
                        std::uint64_t most = most_bytes_of_input);

} // namespace fmha::system
