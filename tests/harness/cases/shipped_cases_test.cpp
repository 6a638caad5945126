#include "harness/cases/case_fields.hpp"
#include "harness/cases/case_problem.hpp"
#include "harness/cases/load.hpp"

#include "dispatcher/types/error.hpp"

#include <gmock/gmock.h>

namespace fmha::harness {
namespace {

const std::filesystem::path root = FMHA_CASES_DIR;

std::vector<FwdCase> shipped(Tier tier) { return load_cases({}, {.root = root, .tier = tier}); }

TEST(ShippedCases, NameIsReproducer) {
    for (const auto& concrete : shipped(Tier::full)) {
        auto again = load_case(concrete.id, root);
        again.tier = concrete.tier;
        ASSERT_EQ(again, concrete) << concrete.id;
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
