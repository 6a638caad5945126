#include "harness/cli/output_files.hpp"

#include "dispatcher/system/files.hpp"
#include "dispatcher/types/error.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>

namespace fmha::cli {

namespace {

namespace fs = std::filesystem;

/// The one name of a file; nothing where it cannot be lost.
std::optional<fs::path> place_of(const fs::path& file) {
    std::error_code failure;
    const auto status = fs::status(file, failure);
    if (file.empty() || (fs::exists(status) && !fs::is_regular_file(status))) return std::nullopt;
    const auto place = fs::weakly_canonical(system::behind_links(fs::absolute(file)), failure);
    return failure ? file : place;
}

} // namespace

void require_different(const NamedFiles& outputs, const NamedFiles& inputs) {
    std::map<fs::path, std::string> owners;
    for (const auto& [option, file] : inputs)
        if (const auto place = place_of(file)) owners.emplace(*place, option);
    for (const auto& [option, file] : outputs) {
        const auto place = place_of(file);
        if (!place) continue;
        const auto [owner, is_new] = owners.emplace(*place, option);
        if (!is_new)
            throw InputError(
                fmt::format("{} {}: {} names the same file", option, file.string(), owner->second));
    }
}

} // namespace fmha::cli
