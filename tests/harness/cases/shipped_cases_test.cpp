#include "harness/cases/case_fields.hpp"
#include "harness/cases/case_problem.hpp"
#include "harness/cases/load.hpp"
#include "harness/run/planned_kernels.hpp"

#include "dispatcher/types/error.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

namespace fmha::harness {
namespace {

const std::filesystem::path root = FMHA_CASES_DIR;

std::vector<Case> shipped(Tier tier) {
    return load_cases({}, {.root = root, .tier = tier, .planned_tile = house_tiles("gfx950")});
}

TEST(ShippedCases, NameIsReproducer) {
    const auto cases = shipped(Tier::full);
    // Each name reads its file again; every seventh of the full tier meets every file and axis.
    for (std::size_t i = 0; i < cases.size(); i += 7) {
        auto again = load_case(cases[i].id, root);
        again.tier = cases[i].tier;
        ASSERT_EQ(again, cases[i]) << cases[i].id;
    }
}

TEST(ShippedCases, ProblemIsRefusedExactlyWhereTheFileSaysSo) {
    for (const auto& concrete : shipped(Tier::full)) {
        std::string rule;
        try {
            to_problem(concrete, "gfx950");
        } catch (const ProblemError& error) {
            rule = error.rule();
        }
        const bool refused = concrete.expect == Expectation::invalid_problem;
        EXPECT_EQ(rule, refused ? concrete.expect_rule : "") << concrete.id;
    }
}

/// B.6.7: what is promised to be deterministic has the same bits in ten runs.
TEST(ShippedCases, OfDeterminismRunTenTimes) {
    std::set<ApiFamily> families;
    for (const Case& one : shipped(Tier::full)) {
        if (std::ranges::find(one.labels, "determinism") == one.labels.end()) continue;
        EXPECT_GE(one.repeats, 10) << one.id;
        families.insert(one.family);
    }
    EXPECT_EQ(families.size(), EnumTable<ApiFamily>::names.size()) << "every family has such cases";
}

} // namespace
} // namespace fmha::harness
