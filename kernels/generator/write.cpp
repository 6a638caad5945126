#include "kernels/generator/write.hpp"

#include "dispatcher/system/files.hpp"
#include "dispatcher/types/error.hpp"

#include <fmt/format.h>

#include <unordered_set>
#include <vector>

namespace fmha::generator {

namespace fs = std::filesystem;

namespace {
constexpr std::string_view marker = ".fmha-kernels";
}

void claim_folder(const fs::path& folder) {
    if (fs::exists(folder) && !fs::is_directory(folder))
        throw InputError(fmt::format("{}: is a file, expected a folder", folder.string()));
    fs::create_directories(folder);
    if (fs::exists(folder / marker)) return;
    if (!fs::is_empty(folder))
        throw InputError(fmt::format("{}: holds files that are not of kernels; give a new or an empty folder",
                                     folder.string()));
    system::write_file(folder / marker, "Files beside this one are replaced and removed by fmha.\n");
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
