#include "harness/cli/output_files.hpp"

#include "dispatcher/types/error.hpp"

#include <fmt/format.h>

#include <map>

namespace fmha::cli {

void require_different(const NamedFiles& files) {
    namespace fs = std::filesystem;
    std::map<fs::path, std::string_view> owners;
    for (const auto& [option, file] : files) {
        std::error_code failure;
        const auto status = fs::status(file, failure);
        if (file.empty() || (fs::exists(status) && !fs::is_regular_file(status))) continue;
        const auto place = fs::weakly_canonical(fs::absolute(file), failure);
        const auto [owner, is_new] = owners.emplace(failure ? file : place, option);
        if (!is_new)
            throw InputError(
                fmt::format("{} {}: {} names the same file", option, file.string(), owner->second));
    }
}

} // namespace fmha::cli
