// Random problems: the same seed draws the same ones, nearly all are legal, and a faulty kernel is found and made smaller.

#include "harness/fuzz/fuzz.hpp"

#include "harness/cases/case_problem.hpp"
#include "harness/cases/check_form.hpp"
#include "harness/cases/load.hpp"
#include "harness/cases/plain_case.hpp"
#include "harness/fuzz/random_case.hpp"
#include "harness/run/catalogue_kernels.hpp"
#include "harness/run/planned_kernels.hpp"
#include "kernels/targets/host/faults/fault.hpp"
#include "tests/harness/command_support.hpp"
#include "tests/harness/faulty_kernels.hpp"

#include <gmock/gmock.h>

namespace fmha::harness::test {
namespace {

using testing::HasSubstr;

const std::filesystem::path root = FMHA_CASES_DIR;

class EveryFamily : public testing::TestWithParam<ApiFamily> {
  protected:
    Case plain_ = plain_case(GetParam(), root);
    TilePlanner tiles_ = house_tiles("gfx950");
};

TEST_P(EveryFamily, NamesReadBackAndNearlyAllAreLegal) {
    constexpr std::uint64_t problems = 300;
    std::uint64_t legal = 0;
    std::set<std::string> names;
    for (std::uint64_t seed = 0; seed < problems; ++seed) {
        const Case c = random_case(plain_, seed, tiles_);
        ASSERT_EQ(random_case(plain_, seed, tiles_), c);
        names.insert(c.id);
        try {
            check_form(c, c.id);
            to_problem(c, "gfx950");
            ++legal;
        } catch (const Error& error) {
            continue;
        }
        Case again = load_case(c.id, root);
        again.id = c.id;
        ASSERT_EQ(again, c);
    }
    EXPECT_GT(names.size(), problems * 9 / 10);
    EXPECT_GE(legal, problems * 9 / 10);
}

TEST_P(EveryFamily, LengthsLieAtTheEdgesOfThePlannedTile) {
    if (GetParam() == ApiFamily::fwd_appendkv)
        return; // its tile is of new keys, and no kernel of it is planned by tiles
    const TilePlanner planned = [](const Case&) { return Tile{.m0 = 64, .n0 = 96}; };
    int edges = 0;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        const Case c = random_case(plain_, seed, planned);
        const std::int64_t past = (c.seqlen_k.front() + 1) % 96;
        edges += past <= 2 && c.seqlen_k.front() >= 95 ? 1 : 0;
    }
    EXPECT_GE(edges, 50);
}

INSTANTIATE_TEST_SUITE_P(Drawn, EveryFamily, testing::ValuesIn(every<ApiFamily>()),
                         [](const auto& family) { return std::string(to_string(family.param)); });

/// `fmha fuzz` on kernels of forward with a mistake.
cli::test::Ran fuzz_forward(std::vector<std::string> arguments, std::optional<targets::Fault> fault) {
    std::vector<std::unique_ptr<cli::Command>> commands;
    commands.push_back(cli::make_fuzz_command(
        [fault](const auto& target, const std::string&, catalog::FamilySet) -> std::unique_ptr<KernelSource> {
            const std::vector<Case> cases{plain_case(ApiFamily::fwd, root)};
            if (!fault) return house_kernels(target, {}, kernel_families_of(cases));
            return kernels_that(
                [fault](const KernelConfig& config, const Invocation& args) {
                    host_target::run_fwd_with_fault(config, std::get<FwdArgs>(args), *fault, {.threads = 1});
                },
                cases, "gfx950");
        }));
    arguments.insert(arguments.begin(),
                     {"fuzz", "--cases-root", root.string(), "--family", "fwd", "--minutes", "0"});
    return cli::test::run(std::move(commands), arguments);
}

TEST(FuzzCommand, IsGreenOnCorrectKernelsAndCountsEveryProblem) {
    const auto ran = fuzz_forward({"--count", "24", "--seed", "3"}, std::nullopt);
    EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("seed 3"));
    EXPECT_THAT(ran.out, HasSubstr("24 generated"));
    EXPECT_THAT(ran.out, HasSubstr("   0 red   "));
    EXPECT_THAT(ran.out, HasSubstr("GREEN\n"));
    EXPECT_THAT(ran.out, HasSubstr("problems an hour"));
}

TEST(FuzzCommand, FindsAFaultyKernelAndMakesTheProblemSmaller) {
    const auto ran = fuzz_forward({"--count", "24", "--seed", "3", "--shrink", "1"},
                                  targets::Fault::alibi_neighbour_slope);
    EXPECT_EQ(ran.code, 1) << ran.out << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("FAILED fwd/plain["));
    EXPECT_THAT(ran.out, HasSubstr("SMALLER fwd/plain[nhead_q=2,"));
    EXPECT_THAT(ran.out, HasSubstr("bias=a:0"));
    EXPECT_THAT(ran.out, HasSubstr("repeat   fmha verify 'fwd/plain["));
    EXPECT_THAT(ran.out, HasSubstr("RED\n"));
}

TEST(FuzzCommand, RefusesARunWithoutAnEnd) {
    const auto ran = cli::test::run({"fuzz", "--minutes", "0"});
    EXPECT_EQ(ran.code, 2);
    EXPECT_THAT(ran.err, HasSubstr("--minutes 0 needs --count"));
    EXPECT_EQ(cli::test::run({"fuzz", "--family", "backward"}).code, 2);
    EXPECT_EQ(cli::test::run({"fuzz", "--jobs", "0"}).code, 2);
}

TEST(Fuzz, RefusalsAreCountedByTheirReason) {
    FuzzOptions options;
    options.plain = {plain_case(ApiFamily::fwd, root)};
    options.most = 20;
    const auto cases = options.plain;
    const auto target = make_target("host", {});
    // A list of few kernels refuses most problems, and says why.
    const auto source =
        house_kernels(target, "c.hdim_q == 256 and c.data_type == 'fp16'", kernel_families_of(cases));
    const FuzzCounts counts = fuzz(*source, *target, options, [](std::size_t, const CaseResult&) {});
    EXPECT_EQ(counts.generated, 20);
    EXPECT_GT(counts.all_refused(), 5);
    EXPECT_EQ(counts.generated, counts.executed + counts.all_refused() + counts.all_not_run());
    EXPECT_TRUE(std::ranges::any_of(counts.refused, [](const auto& reason) {
        return reason.first.find("data_type") != std::string::npos;
    })) << counts.refused.begin()->first;
}

} // namespace
} // namespace fmha::harness::test
