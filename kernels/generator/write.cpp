#include "kernels/generator/write.hpp"

#include "dispatcher/system/file_lock.hpp"
#include "dispatcher/system/files.hpp"
#include "dispatcher/types/error.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <thread>
#include <unistd.h>
#include <unordered_set>
#include <vector>

namespace fmha::generator {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view marker = ".fmha-kernels";
constexpr std::string_view content = "Files beside this one are replaced and removed by fmha.\n";
constexpr std::chrono::milliseconds patience{50}; ///< between looks at the lock

} // namespace

ClaimedFolder::ClaimedFolder(const fs::path& folder, const Waiting& waiting,
                             const std::function<bool()>& stop) {
    if (fs::exists(folder) && !fs::is_directory(folder))
        throw InputError(fmt::format("{}: is a file, expected a folder", folder.string()));
    fs::create_directories(folder);
    const fs::path mark = folder / marker;
    // Asked twice, because another process may mark an empty folder in between.
    if (!fs::exists(mark) && !fs::is_empty(folder) && !fs::exists(mark))
        throw InputError(fmt::format("{}: holds files that are not of kernels; give a new or an empty folder",
                                     folder.string()));
    descriptor_ = open(mark.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor_ < 0)
        throw InputError(fmt::format("{}: cannot be written: {}", mark.string(), std::strerror(errno)));
    try {
        for (pid_t told = -1; const auto holder = system::locked_by_another(descriptor_, mark);) {
            const std::string who = *holder > 0 ? fmt::format("process {}", *holder) : "a process elsewhere";
            if (stop && stop())
                throw InputError(
                    fmt::format("{}: is in use by {}; stopped while waiting for it", folder.string(), who));
            if (waiting && *holder != told)
                waiting(fmt::format("waiting for {}, which is at work in {}", who, folder.string()));
            told = *holder;
            std::this_thread::sleep_for(patience);
        }
        if (fs::file_size(mark) == 0 && write(descriptor_, content.data(), content.size()) < 0)
            throw InputError(fmt::format("{}: cannot be written: {}", mark.string(), std::strerror(errno)));
    } catch (...) {
        close(descriptor_);
        throw;
    }
}

ClaimedFolder::~ClaimedFolder() {
    close(descriptor_);
}

std::string source_file(const Unit& unit, std::string_view extension) {
    return fmt::format("src/{}.{}", unit.stem, extension);
}

void remove_others(const fs::path& folder, std::span<const std::string> kept) {
    if (!fs::is_directory(folder)) return;
    const std::unordered_set<std::string> names(kept.begin(), kept.end());
    std::vector<fs::path> others;
    for (const auto& entry : fs::directory_iterator(folder))
        if (entry.is_regular_file() && !names.contains(entry.path().filename().string()))
            others.push_back(entry.path());
    for (const fs::path& path : others) fs::remove(path);
}

void write_sources(std::span<const Unit> units, const fs::path& folder, std::string_view extension) {
    for (const Unit& unit : units) check_symbols(unit.kernels);
    fs::create_directories(folder / "src");
    std::vector<std::string> names;
    for (const Unit& unit : units) {
        const fs::path file = source_file(unit, extension);
        system::update_file(folder / file, source_of(unit));
        names.push_back(file.filename().string());
    }
    remove_others(folder / "src", names);
}

} // namespace fmha::generator
