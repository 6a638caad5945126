#pragma once

#include <cstdint>
#include <istream>
#include <string>

namespace fmha::system {

/// More bytes than any input has, of a file (`read_file`) or of a stream. A device or a pipe without an end would take all memory.
inline constexpr std::uint64_t most_bytes_of_input = std::uint64_t{1} << 33U;

/// A stream to its end. Throws InputError with its `name` when it has more than `most` bytes.
std::string read_stream(std::istream& stream, const std::string& name,
                        std::uint64_t most = most_bytes_of_input);

} // namespace fmha::system
