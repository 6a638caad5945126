#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace fmha::system {

/// Where the links of a name lead, whether there is a file or not: weakly_canonical of the library keeps the name of a link to a file
/// that is still to be written. Throws InputError where they go round, or are more than 40.
std::filesystem::path behind_links(std::filesystem::path file);

/// The whole file, which may be a pipe or a device. Throws InputError with the path and the system's reason, and for a file of more than
/// `most_bytes_of_input` bytes (streams.hpp).
std::string read_file(const std::filesystem::path& path);

/// Writes a file through a neighbour that is renamed, so that nobody ever sees half of it, and creates the folders that it
/// lacks. A device or a pipe is written to; a link stays one. Throws InputError with the path and the reason.
void write_file(const std::filesystem::path& path, std::string_view text);

/// Throws the InputError of `write_file` when it could not write now.
void check_writable(const std::filesystem::path& path);

/// `write_file`, unless the file has this content already: its time stamp, by which Ninja goes, then stays. Returns
/// whether it wrote.
bool update_file(const std::filesystem::path& path, std::string_view text);

} // namespace fmha::system
