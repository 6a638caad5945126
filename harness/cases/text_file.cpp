#include "harness/cases/text_file.hpp"

#include "dispatcher/types/error.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace fmha::harness {

std::string read_text_file(const std::string& path) {
    std::error_code unused;
    if (!std::filesystem::exists(path, unused)) throw InputError(fmt::format("{}: no such file", path));
    if (!std::filesystem::is_regular_file(path, unused))
        throw InputError(fmt::format("{}: expected a file, this is not a regular file", path));
    std::ifstream stream(path, std::ios::binary);
    if (!stream) throw InputError(fmt::format("{}: cannot be opened for reading", path));
    return {std::istreambuf_iterator<char>(stream), {}};
}

} // namespace fmha::harness
