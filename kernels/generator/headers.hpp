#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace fmha::generator {

/// The header that generated sources include, relative to the root of the kernels' headers.
inline constexpr std::string_view entry_header = "kernels/targets/hip/entry.hpp";

/// The folder that `entry_header` is found under: `given`, else the environment's FMHA_KERNEL_ROOT, else the installed
/// headers beside this program, else the source tree that it was built from. Throws InputError with all that was tried.
std::filesystem::path kernel_root(const std::string& given);

/// The project's headers that the entry header includes, itself first and with everything that they include in turn,
/// relative to `root`. Every include line counts, those under a condition too, and a table's row
/// any file that may be its own (dispatcher/types/include_files.hpp). Throws std::filesystem::filesystem_error where their folder is missing.
std::vector<std::string> headers_of(const std::filesystem::path& root);

/// SHA-256 over names and contents of those headers: which bytes, not where.
std::string headers_digest(const std::filesystem::path& root);

} // namespace fmha::generator
