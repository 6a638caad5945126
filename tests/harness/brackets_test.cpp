// Values in brackets reach their commands whole.

#include "tests/harness/command_support.hpp"

#include <gmock/gmock.h>

namespace fmha::cli {
namespace {

using test::Ran;
using test::run;
using testing::HasSubstr;

/// CLI11 takes lists of configuration files apart, "[a,b]".
TEST(Options, BracketsArePartsOfTheirValues) {
    EXPECT_THAT(run({"verify", "[fwd/tiny]", "--list"}).err, HasSubstr("[fwd/tiny]"));
    EXPECT_THAT(run({"verify", "fwd/none", "[fwd/tiny,fwd/tiny]", "--list"}).err, HasSubstr("fwd/none: "));
    EXPECT_THAT(run({"merge", "[a]"}).err, HasSubstr("[a]"));
    EXPECT_THAT(run({"bench", "--shape", "[hdim=32,seqlen=16]"}).err, HasSubstr("[hdim"));
    EXPECT_THAT(run({"enumerate", "--where", "[c.hdim_q, c.hdim_v] in [[64, 64]]", "--count"}).err,
                HasSubstr("\"[c.hdim_q, c.hdim_v] in [[64, 64]]\": "));
    // An option takes its value and no word behind it.
    const Ran two = run({"enumerate", "--where", "c.hdim_q == 64", "c.hdim_v == 64", "--count"});
    EXPECT_EQ(two.code, 2) << two.out;
    EXPECT_THAT(two.err, HasSubstr("c.hdim_v == 64"));
}

TEST(Options, OfOneValueAreGivenOnce) {
    EXPECT_EQ(run({"verify", "fwd/tiny", "--tier", "smoke", "--arch", "gfx950", "--tier", "full"}).err,
              "fmha verify: --tier is given 2 times; allowed: once (see fmha verify --help)\n");
    EXPECT_EQ(run({"verify", "fwd/tiny", "--jobs=1", "--jobs=1", "--jobs=1"}).err,
              "fmha verify: --jobs is given 3 times; allowed: once (see fmha verify --help)\n");
    // Lists and flags, which may be given more often, are not to blame.
    EXPECT_THAT(run({"bench", "--num-splits", "1", "--num-splits", "2", "--compile-only", "--seconds", "1",
                     "--seconds", "2"})
                    .err,
                HasSubstr("fmha bench: --seconds is given 2 times; allowed: once"));
    for (const std::vector<std::string>& folders :
         {std::vector<std::string>{"--tensors", "a"}, {"--tensors", "a", "b", "--tensors", "c", "d"}}) {
        std::vector<std::string> line{"compare", "fwd/tiny"};
        line.insert(line.end(), folders.begin(), folders.end());
        EXPECT_EQ(run(line).err,
                  fmt::format("fmha compare: --tensors has {} values; allowed: 2, one behind the other "
                              "(see fmha compare --help)\n",
                              folders.size() == 2 ? 1 : 4));
    }
}

/// CLI11 makes no value of a lone comma, and would take the word behind it.
TEST(Options, AListHasAValueOnBothSidesOfAComma) {
    for (const std::string list : {",", "gfx950,", ",gfx950", "gfx950,,gfx942"}) {
        const Ran ran = run({"enumerate", "--arch", list, "--count"});
        EXPECT_EQ(ran.code, 2) << list;
        EXPECT_EQ(ran.err, "fmha enumerate: --arch: \"" + list +
                               "\" has no value on one side of a comma (see fmha enumerate --help)\n");
        EXPECT_EQ(ran.out, "");
    }
    const auto count = [](const std::vector<std::string>& archs) {
        std::vector<std::string> all{"enumerate", "--count", "--family", "fwd"};
        all.insert(all.end(), archs.begin(), archs.end());
        return run(all).out;
    };
    EXPECT_EQ(count({"--arch", "gfx950,gfx942"}), count({"--arch", "gfx950", "--arch", "gfx942"}));
    EXPECT_NE(count({"--arch", "gfx950,gfx942"}), count({"--arch", "gfx950"}));
}

} // namespace
} // namespace fmha::cli
