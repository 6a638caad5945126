// The whole lists, names and order, as SHA-256. A change of a table or a rule of an audited set changes
// one of these on purpose; `fmha parity` then names the kernels.

#include "tests/catalog/audit_helpers.hpp"

#include <gtest/gtest.h>

namespace fmha::catalog::test {
namespace {

struct Golden {
    RuleSet rules;
    const char* arch;
    const char* digest;
};

class EmissionDigest : public testing::TestWithParam<Golden> {};

TEST_P(EmissionDigest, AtReceiptZero) {
    const Golden& golden = GetParam();
    EXPECT_EQ(emission_digest(request_for(golden.rules, golden.arch)), golden.digest);
}

INSTANTIATE_TEST_SUITE_P(
    Audit, EmissionDigest,
    testing::Values(
        Golden{RuleSet::claim, "gfx90a", "1725d469b8c06805d06c21e3fe99387b5170051ee92086e245a18a115c4d85cc"},
        Golden{RuleSet::claim, "gfx942", "646e99c43ce21d983d846295d9d12b37546fbbd674119391591a1fcc4f5a56c5"},
        Golden{RuleSet::claim, "gfx950", "efe4200ee85584e418eb3d5c2478c187fbfcacff2b16b180511b5a0eedcd7ebc"},
        Golden{RuleSet::claim, "gfx1100", "7da3004069d4dbfdbe19b45dd0f02ff7fa1c28c067bc3881a6277e6f7e16cf30"},
        Golden{RuleSet::claim, "gfx1201", "7da3004069d4dbfdbe19b45dd0f02ff7fa1c28c067bc3881a6277e6f7e16cf30"},
        Golden{RuleSet::stored, "gfx90a", "f5627ee524d7bb03e41084793f8378f2dbbc43ec43ce85d2ac374321e3e628c0"},
        Golden{RuleSet::stored, "gfx942", "264a6ed310bff9bda3d09fdcdca14a034f80641bff696584ae33e43181371242"},
        Golden{RuleSet::stored, "gfx950", "4da1be0b5859fcfac13a8d7202e31215744d3b27b125406f51e4068ee3dbe183"},
        Golden{RuleSet::stored, "gfx1100",
               "8facd79cb0222dd4b416fae1c2d63376f56e15c204a7348e5d511c8fc5cfd9cf"},
        Golden{RuleSet::stored, "gfx1201",
               "8facd79cb0222dd4b416fae1c2d63376f56e15c204a7348e5d511c8fc5cfd9cf"},
        Golden{RuleSet::sweep, "gfx950", "6516c323b3b48d0d81b85a4c302a7f36c31187e593ca24c1975870e63a66ae8c"},
        Golden{RuleSet::sweep, "gfx1201",
               "c1ceb4bf820cb99930b9b9f55c355d13e00b14ab4b593a1d84223bb78cdf68e0"}),
    [](const auto& test) { return std::string(to_string(test.param.rules)) + "_" + test.param.arch; });

TEST(Audit, DigestsOfDifferentListsDiffer) {
    EXPECT_NE(emission_digest(request_for(RuleSet::stored, "gfx950", "0")),
              emission_digest(request_for(RuleSet::stored, "gfx950", "1")));
    EXPECT_NE(emission_digest(request_for(RuleSet::stored, "gfx950")),
              emission_digest(request_for(RuleSet::claim, "gfx950")));
}

} // namespace
} // namespace fmha::catalog::test
