// A tile program must stay fit for a GPU compiler. Its source files say nothing that one cannot compile.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

namespace fmha::host_target::test {
namespace {

namespace fs = std::filesystem;

struct Ban {
    const char* pattern;
    const char* reason;
};
const Ban bans[] = {
    {R"(\bnew\b|\bdelete\b|\bmalloc\b)", "allocation"},
    {R"(\bthrow\b|\btry\b|\bcatch\b)", "exceptions"},
    {R"(\bstd::(vector|string|map|array|optional|function|cout|cerr|unique_ptr|shared_ptr)\b)",
     "containers and streams"},
    {R"(#include <(?!bit>|cstdint>|limits>|type_traits>|utility>))",
     "a header that device code has no use for"},
    {R"(\bvirtual\b|\bdynamic_cast\b|\btypeid\b)", "run-time types"}};

/// The mistakes in the text of one program header; empty when there is none.
std::vector<std::string> complaints(std::string text, bool may_ask_for_the_compiler) {
    text = std::regex_replace(text, std::regex("//[^\n]*"), "");
    std::vector<std::string> found;
    for (const Ban& ban : bans)
        if (std::regex_search(text, std::regex(ban.pattern))) found.emplace_back(ban.reason);
    if (!may_ask_for_the_compiler && std::regex_search(text, std::regex(R"(#\s*if)")))
        found.emplace_back("conditional compilation");
    return found;
}

TEST(ProgramText, HoldsNothingThatADeviceCannotRun) {
    int files = 0;
    for (const auto& entry : fs::directory_iterator(fs::path(FMHA_SOURCE_DIR) / "kernels/programs")) {
        if (entry.path().extension() != ".hpp") continue;
        std::ifstream in(entry.path());
        const std::string text{std::istreambuf_iterator<char>(in), {}};
        for (const std::string& complaint : complaints(text, entry.path().filename() == "device.hpp"))
            ADD_FAILURE() << entry.path() << ": " << complaint;
        ++files;
    }
    EXPECT_GE(files, 5);
}

TEST(ProgramText, TheTestSeesWhatItBans) {
    EXPECT_EQ(complaints("int f() { return *new int; }", false), std::vector<std::string>{"allocation"});
    EXPECT_EQ(complaints("std::vector<int> v;", false), std::vector<std::string>{"containers and streams"});
    EXPECT_EQ(complaints("#ifdef X\n#endif", false), std::vector<std::string>{"conditional compilation"});
    EXPECT_EQ(complaints("throw 1;", false), std::vector<std::string>{"exceptions"});
    EXPECT_EQ(complaints("#include <functional>", false),
              std::vector<std::string>{"a header that device code has no use for"});
    EXPECT_TRUE(complaints("#include <type_traits>", false).empty());
    EXPECT_TRUE(complaints("// a new one, thrown away\nint x;", false).empty());
}

} // namespace
} // namespace fmha::host_target::test
