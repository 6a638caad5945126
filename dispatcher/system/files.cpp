#include "dispatcher/system/files.hpp"

#include "dispatcher/types/error.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <unistd.h>

namespace fmha::system {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
    std::error_code unreadable;
    if (fs::is_directory(path, unreadable))
        throw InputError(fmt::format("{}: is a folder, expected a file", path.string()));
    std::ifstream file(path, std::ios::binary);
    if (!file) throw InputError(fmt::format("{}: {}", path.string(), std::strerror(errno)));
    std::string text{std::istreambuf_iterator<char>(file), {}};
    if (file.bad()) throw InputError(fmt::format("{}: cannot be read to its end", path.string()));
    return text;
}

void write_file(const fs::path& path, std::string_view text) {
    const fs::path draft = path.string() + fmt::format(".{}.draft", getpid());
    const auto fail = [&](const char* reason) {
        std::error_code ignored;
        fs::remove(draft, ignored);
        throw InputError(fmt::format("{}: cannot be written: {}", path.string(), reason));
    };
    std::ofstream file(draft, std::ios::binary);
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
    file.close();
    if (!file) fail(std::strerror(errno));
    std::error_code error;
    fs::rename(draft, path, error);
    if (error) fail(error.message().c_str());
}

bool update_file(const fs::path& path, std::string_view text) {
    std::error_code ignored;
    if (fs::is_regular_file(path, ignored) && fs::file_size(path, ignored) == text.size() &&
        read_file(path) == text)
        return false;
    write_file(path, text);
    return true;
}

} // namespace fmha::system
