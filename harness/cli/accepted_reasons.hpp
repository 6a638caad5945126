#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace fmha::cli {

/// The comment lines that a golden file of lines begins with: those that `file` has, and "# date, n changed: reason" of the change that is
/// accepted now. So a file keeps its history, as golden files of lists do. `file` may be absent. Throws InputError for a reason of
/// more than one line.
std::string accepted_reasons(const std::filesystem::path& file, std::size_t changed, std::string_view reason);

} // namespace fmha::cli
