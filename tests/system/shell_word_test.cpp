// Words that are printed for a shell come back from a real one as they were.

#include "dispatcher/system/shell_word.hpp"

#include <cstdio>
#include <gtest/gtest.h>
#include <memory>

namespace fmha::system {
namespace {

std::string through_shell(const std::string& word) {
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(("printf %s " + shell_word(word)).c_str(), "r"),
                                                     pclose);
    std::string text;
    for (int c = std::fgetc(pipe.get()); c != EOF; c = std::fgetc(pipe.get())) text += static_cast<char>(c);
    return text;
}

TEST(ShellWord, SurvivesAShell) {
    for (const std::string word : {"plain", "", "a b", "it's", "''", "fwd/x[mask=b:1,0]@1", "$(false)`x`\\",
                                   "ä*?!#~", "c.pipeline == 'qr' and \"x\""})
        EXPECT_EQ(through_shell(word), word);
}

TEST(ShellWord, LeavesPlainTextAlone) {
    EXPECT_EQ(shell_word("fwd/ragged_tail@1"), "fwd/ragged_tail@1");
}

} // namespace
} // namespace fmha::system
