#include "tests/mutation/survivors.hpp"

#include "dispatcher/system/files.hpp"
#include "dispatcher/types/error.hpp"

#include <fmt/format.h>

#include <fnmatch.h>
#include <sstream>

namespace fmha::harness::test {

std::map<std::string, KnownSurvivor> read_survivors(const std::filesystem::path& path) {
    std::map<std::string, KnownSurvivor> known;
    std::istringstream lines(system::read_file(path));
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
        ++number;
        if (line.empty() || line.front() == '#') continue;
        const auto first = line.find('\t'), second = line.find('\t', first + 1);
        const std::string kind =
            second == std::string::npos ? "" : line.substr(first + 1, second - first - 1);
        if ((kind != "equivalent" && kind != "open") || second + 1 == line.size())
            throw InputError(fmt::format(
                "{}:{}: a survivor is a name, 'equivalent' or 'open', and a sentence, with tabs between them",
                path.string(), number));
        if (!known
                 .emplace(line.substr(0, first), KnownSurvivor{kind == "equivalent", line.substr(second + 1)})
                 .second)
            throw InputError(fmt::format("{}:{}: the survivor is listed twice", path.string(), number));
    }
    return known;
}

const KnownSurvivor* find_survivor(const std::map<std::string, KnownSurvivor>& known,
                                   const std::string& name) {
    const auto exact = known.find(name);
    if (exact != known.end()) return &exact->second;
    for (const auto& [pattern, survivor] : known)
        if (pattern.find_first_of("*?") != std::string::npos &&
            fnmatch(pattern.c_str(), name.c_str(), FNM_NOESCAPE) == 0)
            return &survivor;
    return nullptr;
}

} // namespace fmha::harness::test
