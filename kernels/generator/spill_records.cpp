#include "kernels/generator/spill_records.hpp"

#include "dispatcher/system/files.hpp"
#include "dispatcher/types/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <sstream>

namespace fmha::generator {
namespace {

std::filesystem::path spills_file(const std::filesystem::path& folder, const ArchName& arch) {
    return folder / (arch.str() + ".txt");
}

} // namespace

std::int64_t SpillRecords::allowed(std::string_view name) const {
    if (every) return std::numeric_limits<std::int64_t>::max();
    const auto found = kernels.find(name);
    return found == kernels.end() ? 0 : found->second;
}

SpillRecords read_spills(const std::filesystem::path& folder, const ArchName& arch) {
    const auto path = spills_file(folder, arch);
    SpillRecords records;
    if (!std::filesystem::exists(path)) return records;
    std::istringstream lines(system::read_file(path));
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
        ++number;
        if (line.starts_with('#')) {
            records.reasons += line + "\n";
            continue;
        }
        const std::size_t space = line.find(' ');
        std::int64_t bytes = 0;
        const char* const end = line.data() + std::min(space, line.size());
        const auto read = std::from_chars(line.data(), end, bytes);
        if (space == std::string::npos || read.ec != std::errc() || read.ptr != end || bytes <= 0 ||
            space + 1 == line.size() || !records.kernels.try_emplace(line.substr(space + 1), bytes).second)
            throw InputError(
                fmt::format("{}:{}: expected bytes above 0, a space and a name that does not stand there yet",
                            path.string(), number));
    }
    return records;
}

void write_spills(const SpillRecords& records, const std::filesystem::path& folder, const ArchName& arch) {
    std::string text = records.reasons;
    for (const auto& [name, bytes] : records.kernels) text += fmt::format("{} {}\n", bytes, name);
    std::filesystem::create_directories(folder);
    system::write_file(spills_file(folder, arch), text);
}

std::vector<std::string> accept_spills(const built::Manifest& manifest, const std::filesystem::path& folder,
                                       const std::string& reason, const std::string& date) {
    std::map<std::string, std::pair<SpillRecords, std::int64_t>> by_arch;
    built::each_kernel(manifest, [&](const built::BuiltKernel& kernel, const built::CodeObject& object) {
        if (!kernel.resources) return;
        const auto [at, is_new] = by_arch.try_emplace(object.arch.str());
        auto& [records, changes] = at->second;
        if (is_new) records = read_spills(folder, object.arch);
        const std::int64_t bytes = kernel.resources->scratch_bytes;
        if (bytes == records.allowed(kernel.name)) return;
        ++changes;
        if (bytes > 0)
            records.kernels[kernel.name] = bytes;
        else
            records.kernels.erase(kernel.name);
    });
    std::vector<std::string> sentences;
    for (auto& [arch, found] : by_arch) {
        auto& [records, changes] = found;
        sentences.push_back(fmt::format("{}: {} spills changed or are new", arch, changes));
        if (changes == 0) continue;
        records.reasons += fmt::format("# {}: {}\n", date, reason);
        write_spills(records, folder, ArchName(arch));
    }
    return sentences;
}

} // namespace fmha::generator
