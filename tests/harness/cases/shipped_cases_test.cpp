#include "harness/cases/case_fields.hpp"
#include "harness/cases/case_problem.hpp"
#include "harness/cases/load.hpp"
#include "harness/run/planned_kernels.hpp"

#include "dispatcher/types/error.hpp"

#include <gmock/gmock.h>

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

} // namespace
} // namespace fmha::harness
