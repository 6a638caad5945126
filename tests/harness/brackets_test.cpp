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

} // namespace
} // namespace fmha::cli
