// The two oracles share views, strides and the shape of a result; nothing that computes.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>

namespace {

namespace fs = std::filesystem;

const fs::path root(FMHA_SOURCE_DIR);

/// Every project header that `files` reach, directly or through others.
std::set<std::string> reached_from(const std::set<std::string>& files) {
    static const std::regex include_line(R"(^\s*#\s*include\s+\"([^\"]+)\")");
    std::set<std::string> reached, open = files;
    while (!open.empty()) {
        const std::string path = open.extract(open.begin()).value();
        if (!reached.insert(path).second) continue;
        std::ifstream file(root / path);
        EXPECT_TRUE(file.is_open()) << path;
        std::smatch match;
        for (std::string line; std::getline(file, line);)
            if (std::regex_search(line, match, include_line)) open.insert(match[1]);
    }
    return reached;
}

std::set<std::string> files_in(const std::string& folder) {
    std::set<std::string> files;
    for (const auto& entry : fs::directory_iterator(root / folder))
        files.insert(fs::relative(entry.path(), root).generic_string());
    EXPECT_FALSE(files.empty()) << folder;
    return files;
}

std::set<std::string> that_start_with(const std::set<std::string>& files, const std::string& prefix) {
    std::set<std::string> chosen;
    for (const std::string& file : files)
        if (file.starts_with(prefix)) chosen.insert(file);
    return chosen;
}

TEST(Independence, OraclesShareOnlyViewsAndTheResult) {
    const std::set<std::string> matrix = reached_from(files_in("reference/matrix"));
    const std::set<std::string> by_row = reached_from(files_in("reference/row"));
    std::set<std::string> shared;
    for (const std::string& file : that_start_with(matrix, "reference/"))
        if (by_row.contains(file)) shared.insert(file);
    const std::set<std::string> allowed{
        "reference/append.hpp",         "reference/append_result.hpp",   "reference/attention.hpp",
        "reference/attention_args.hpp", "reference/backward.hpp",        "reference/backward_result.hpp",
        "reference/bounds.hpp",         "reference/combine.hpp",         "reference/combine_result.hpp",
        "reference/forward.hpp",        "reference/kernel_numerics.hpp", "reference/result.hpp",
        "reference/rows.hpp",           "reference/table.hpp",           "reference/views.hpp"};
    EXPECT_EQ(shared, allowed);
    EXPECT_TRUE(that_start_with(matrix, "reference/numerics/").empty());
    EXPECT_TRUE(that_start_with(by_row, "reference/matrix/").empty());
}

TEST(Independence, ReferenceAndKernelsShareOnlyTheTypesAndTheLoopOverThreads) {
    std::set<std::string> reference_files, kernel_files;
    for (auto& [folder, files] :
         {std::pair{"reference", &reference_files}, std::pair{"kernels", &kernel_files}})
        for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
            const fs::path extension = entry.path().extension();
            if (extension == ".hpp" || extension == ".cpp")
                files->insert(fs::relative(entry.path(), root).generic_string());
        }
    ASSERT_FALSE(reference_files.empty() || kernel_files.empty());
    const std::set<std::string> kernels = reached_from(kernel_files);
    for (const std::string& file : reached_from(reference_files))
        if (kernels.contains(file)) {
            EXPECT_TRUE(file.starts_with("dispatcher/types/") || file == "dispatcher/system/parallel.hpp")
                << file;
        }
}

} // namespace
