#include "tests/catalog/catalog_support.hpp"

#include <algorithm>
#include <deque>
#include <stdexcept>

namespace fmha::catalog::test {

arch::ArchSet changed(const std::string& path, const std::function<void(nlohmann::json&)>& change,
                      const std::vector<std::pair<std::string, std::string>>& extra) {
    std::deque<std::string> texts;
    std::vector<arch::ArchSet::File> files;
    bool found = path.empty();
    for (const arch::ArchSet::File& file : arch::ArchSet::built_in_files()) {
        if (file.path != path) {
            files.push_back(file);
            continue;
        }
        found = true;
        nlohmann::json document = nlohmann::json::parse(file.text);
        change(document);
        texts.push_back(document.dump());
        files.push_back({file.path, texts.back()});
    }
    if (!found) throw std::logic_error("no file " + path);
    for (const auto& [name, text] : extra) files.push_back({name, text});
    return arch::ArchSet::parse(files, /*validate=*/true);
}

Difference difference(const std::set<std::string>& before, const std::set<std::string>& after) {
    Difference result;
    std::set_difference(after.begin(), after.end(), before.begin(), before.end(),
                        std::back_inserter(result.gained));
    std::set_difference(before.begin(), before.end(), after.begin(), after.end(),
                        std::back_inserter(result.lost));
    return result;
}

} // namespace fmha::catalog::test
