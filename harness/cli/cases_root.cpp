#include "harness/cli/cases_root.hpp"

#include <filesystem>

namespace fmha::cli {

void declare_cases_root(OptionSet& options, std::string& root) {
    options.option(
        "--cases-root", root,
        "Folder that relative case names start from, but for ./NAME and ../NAME, which start here (default: "
        "cases here, else the source tree's)");
}

std::string cases_root(const std::string& given) {
    if (!given.empty()) return given;
    std::error_code unreadable;
    return std::filesystem::is_directory("cases/fwd", unreadable) ? "cases" : FMHA_CASES_DIR;
}

} // namespace fmha::cli
