#include "dispatcher/system/program.hpp"

#include "dispatcher/system/files.hpp"

namespace fmha::system {
namespace {

constexpr const char* own_link = "/proc/self/exe";

} // namespace

std::filesystem::path program_path() {
    std::error_code unknown;
    return std::filesystem::read_symlink(own_link, unknown);
}

std::string program_bytes() {
    return read_file(own_link);
}

} // namespace fmha::system
