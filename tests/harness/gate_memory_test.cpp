// `fmha gate` on a store that remembers many runs: those that were killed, and those that are of an older program.

#include "tests/harness/command_support.hpp"
#include "tests/harness/gate_findings.hpp"

#include <gmock/gmock.h>

namespace fmha::cli {
namespace {

using test::keep;
using test::Ran;
using test::run_of;
using test::Scratch;
using test::usual;
using testing::HasSubstr;
using testing::Not;

Ran gate(const std::string& store, const std::string& against, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments{"gate", "--store", store, "--against", against};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return test::run(arguments);
}

void kill_a_run(const std::string& store, const std::string& commit) {
    const store::Recording killed(store, run_of(store::RunKind::verify, commit));
}

TEST(GateMemory, ARunThatWasKilledIsRedAlthoughAnOlderOneIsGreen) {
    const Scratch folder;
    const std::string before = folder / "old.db", store = folder / "new.db";
    keep(before, "aaaa", usual());
    keep(store, "bbbb", usual());
    kill_a_run(store, "bbbb");
    const Ran ran = gate(store, before);
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.out, HasSubstr("not_green   verify host gfx950"));
    EXPECT_THAT(ran.out, HasSubstr(" and not finished\n"));
    EXPECT_EQ(gate(store, before, {"--accept", "--reason", "x"}).code, 1)
        << "nobody can say that it is right";
    keep(store, "bbbb", usual());
    EXPECT_EQ(gate(store, before).code, 0) << "it was run again";
}

TEST(GateMemory, ARunOfAnOlderProgramThatWasKilledIsForgiven) {
    const Scratch folder;
    const std::string store = folder / "new.db";
    keep(store, "aaaa", usual());
    kill_a_run(store, "aaaa");
    keep(store, "bbbb", usual());
    EXPECT_EQ(gate(store, "previous").code, 0);
}

TEST(GateMemory, SeriesThatTheNewestProgramHasNotRunAreNamed) {
    const Scratch folder;
    const std::string store = folder / "new.db";
    keep(store, "aaaa", usual());
    keep(store, "bbbb", usual());
    EXPECT_THAT(gate(store, "previous").out, Not(HasSubstr("newest program")));
    store::Recording parity(store, run_of(store::RunKind::parity, "cccc"));
    parity.add(usual().counts);
    parity.finish(1.0, "green");
    EXPECT_THAT(
        gate(store, "previous").out,
        testing::ContainsRegex("note: the newest program, of .*, has not run bench host gfx950 .*, build .*, "
                               "verify host gfx950 .*; their last runs are compared"));
}

} // namespace
} // namespace fmha::cli
