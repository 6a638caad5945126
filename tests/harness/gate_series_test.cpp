// `fmha gate --family`: what concerns a whole series of runs is red in each of its families.

#include "tests/harness/command_support.hpp"
#include "tests/harness/gate_findings.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace fmha::cli {
namespace {

using test::Findings;
using test::Ran;
using test::run_of;
using test::Scratch;
using test::usual;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Ran verdict_of(const Scratch& folder, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{"gate", "--store", folder / "new.db", "--against", folder / "old.db"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return test::run(arguments);
}

TEST(Gate, ALostSeriesIsRedInEachOfItsFamilies) {
    const Scratch folder;
    const Findings all = usual();
    for (const char* side : {"old.db", "new.db"}) keep(folder / side, side, all);
    const auto another = [](store::RunKind kind) {
        store::RunRecord run = run_of(kind, "old.db");
        run.selection = "more";
        return run;
    };
    store::Recording verify(folder / "old.db", another(store::RunKind::verify));
    for (const auto& result : all.results) verify.add(result.name, {&result, 1});
    verify.finish(1.0, "green");
    store::Recording build(folder / "old.db", another(store::RunKind::build));
    build.add(std::vector{all.resources.back()});
    build.finish(1.0, "green");
    store::Recording bench(folder / "old.db", another(store::RunKind::bench));
    for (const auto& time : all.benches.back()) bench.add(time);
    bench.finish(1.0, "green");
    const auto lost = [&](std::string_view kind) {
        return HasSubstr(fmt::format("series_lost {} host gfx950 more", kind));
    };
    const Ran fwd = verdict_of(folder, {"--family", "fwd"}), bwd = verdict_of(folder, {"--family", "bwd"});
    EXPECT_EQ(fwd.code, 1);
    EXPECT_EQ(bwd.code, 1);
    EXPECT_THAT(fwd.out, AllOf(lost("verify"), lost("bench"), Not(lost("build"))));
    EXPECT_THAT(bwd.out, AllOf(lost("verify"), lost("build"), Not(lost("bench"))));
    EXPECT_THAT(verdict_of(folder).out,
                AllOf(lost("verify"), lost("bench"), lost("build"), HasSubstr("RED, 3 findings\n")));
}

TEST(Gate, AKilledRunIsRedInEachFamilyThatItMayHave) {
    for (const char* selection : {"", "never seen"}) {
        const Scratch folder;
        for (const char* side : {"old.db", "new.db"}) keep(folder / side, side, usual());
        store::RunRecord run = run_of(store::RunKind::verify, "new.db");
        run.selection = selection;
        { const store::Recording killed(folder / "new.db", run); }
        for (const char* family : {"fwd", "bwd"}) {
            const Ran ran = verdict_of(folder, {"--family", family});
            EXPECT_EQ(ran.code, 1) << selection << family;
            EXPECT_THAT(ran.out, HasSubstr("and not finished\n"));
        }
        EXPECT_THAT(verdict_of(folder).out, HasSubstr("RED, 1 finding\n"));
    }
}

} // namespace
} // namespace fmha::cli
