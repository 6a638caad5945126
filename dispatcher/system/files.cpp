#include "dispatcher/system/files.hpp"

#include "dispatcher/system/streams.hpp"
#include "dispatcher/types/error.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <unistd.h>

namespace fmha::system {

namespace fs = std::filesystem;

namespace {

/// Where bytes go, and the name that they get once they are complete; empty when they go there at once.
struct Destination {
    fs::path draft, name;
};

Destination destination_of(const fs::path& file) {
    std::error_code failure;
    if (file.has_parent_path()) fs::create_directories(file.parent_path(), failure);
    if (failure) throw InputError(fmt::format("{}: cannot be written: {}", file.string(), failure.message()));
    const auto there = fs::status(file, failure);
    if (fs::is_directory(there))
        throw InputError(fmt::format("{}: is a folder, not a file to write", file.string()));
    // Devices and pipes (/dev/stdout, /dev/null) are written to, not replaced by a file of their name.
    if (fs::exists(there) && !fs::is_regular_file(there)) return {file, {}};
    const fs::path name = behind_links(file);
    // Two threads, of one process or of two, may write the same file.
    return {fmt::format("{}.{}.draft", name.string(), gettid()), name};
}

} // namespace

fs::path behind_links(fs::path file) {
    constexpr int most_links = 40; // as the kernel has it
    std::error_code failure;
    for (int n = 0; fs::is_symlink(fs::symlink_status(file, failure)); ++n) {
        if (n == most_links)
            throw InputError(fmt::format("{}: cannot be reached: too many links", file.string()));
        file = file.parent_path() / fs::read_symlink(file, failure);
    }
    return file;
}

std::string read_file(const fs::path& path) {
    std::error_code unreadable;
    if (fs::is_directory(path, unreadable))
        throw InputError(fmt::format("{}: is a folder, not a file", path.string()));
    std::ifstream file(path, std::ios::binary);
    if (!file) throw InputError(fmt::format("{}: {}", path.string(), std::strerror(errno)));
    // Only a regular file says its size; what comes through a pipe or from a device is counted.
    if (fs::is_regular_file(path, unreadable) && fs::file_size(path, unreadable) > most_bytes_of_input)
        refuse_size(path.string());
    std::string text = read_stream(file, path.string());
    if (file.bad()) throw InputError(fmt::format("{}: cannot be read to its end", path.string()));
    return text;
}

void write_file(const fs::path& path, std::string_view text) {
    const Destination to = destination_of(path);
    std::error_code error, ignored;
    std::ofstream file(to.draft, std::ios::binary);
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
    file.close();
    if (!file)
        error = std::error_code(errno, std::generic_category());
    else if (!to.name.empty())
        fs::rename(to.draft, to.name, error);
    if (file && !error) return;
    if (!to.name.empty()) fs::remove(to.draft, ignored);
    throw InputError(fmt::format("{}: cannot be written: {}", path.string(), error.message()));
}

void check_writable(const fs::path& path) {
    const Destination to = destination_of(path);
    const bool writable = std::ofstream(to.draft, std::ios::binary | std::ios::app).good();
    const std::string reason = std::strerror(errno);
    std::error_code ignored;
    if (!to.name.empty()) fs::remove(to.draft, ignored);
    if (!writable) throw InputError(fmt::format("{}: cannot be written: {}", path.string(), reason));
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
