#include "harness/cli/accepted_reasons.hpp"

#include "dispatcher/types/error.hpp"
#include "harness/cli/input_text.hpp"
#include "harness/cli/today.hpp"

#include <fmt/format.h>

#include <sstream>

namespace fmha::cli {

std::string accepted_reasons(const std::filesystem::path& file, std::size_t changed,
                             std::string_view reason) {
    if (reason.find('\n') != std::string_view::npos)
        throw InputError("--reason: one line is expected, because the file keeps one for each change");
    std::string reasons;
    if (std::filesystem::exists(file)) {
        std::istringstream text(input_text(file.string()));
        for (std::string line; std::getline(text, line);)
            if (line.starts_with('#')) reasons += line + "\n";
    }
    return reasons + fmt::format("# {}, {} changed: {}\n", today(), changed, reason);
}

} // namespace fmha::cli
