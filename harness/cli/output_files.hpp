#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace fmha::cli {

/// Files by the option that names them; "" is none.
using NamedFiles = std::vector<std::pair<std::string, std::filesystem::path>>;

/// Throws InputError when two of `outputs` name the same file, one of which would be lost, or when one is also an input. Two may share
/// a device such as /dev/null.
void require_different(const NamedFiles& outputs, const NamedFiles& inputs = {});

} // namespace fmha::cli
