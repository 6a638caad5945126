#include "harness/cli/cases_root.hpp"

#include <filesystem>

namespace fmha::cli {

std::string cases_root(const std::string& given) {
    if (!given.empty()) return given;
    std::error_code unreadable;
    return std::filesystem::is_directory("cases/fwd", unreadable) ? "cases" : FMHA_CASES_DIR;
}

} // namespace fmha::cli
