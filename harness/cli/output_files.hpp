#pragma once

#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

namespace fmha::cli {

/// Files by the option that names them; "" is none.
using NamedFiles = std::vector<std::pair<std::string_view, std::filesystem::path>>;

/// Throws InputError when two options name the same file, one of which would be lost. Two may share a device such as /dev/null.
void require_different(const NamedFiles& files);

} // namespace fmha::cli
