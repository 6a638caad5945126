// Random problems: the same seed draws the same ones, nearly all are legal, and a faulty kernel is found and made smaller.

#include "harness/fuzz/fuzz.hpp"

#include "harness/cases/case_fields.hpp"
#include "harness/cases/case_problem.hpp"
#include "harness/cases/check_form.hpp"
#include "harness/cases/load.hpp"
#include "harness/cases/plain_case.hpp"
#include "harness/data/fwd_fill.hpp"
#include "harness/families/family.hpp"
#include "harness/fuzz/random_case.hpp"
#include "harness/run/catalogue_kernels.hpp"
#include "harness/run/planned_kernels.hpp"
#include "kernels/targets/host/faults/fault.hpp"
#include "tests/harness/command_support.hpp"
#include "tests/harness/faulty_kernels.hpp"

#include <gmock/gmock.h>

#include <csignal>
#include <map>
#include <optional>
#include <set>
#include <unistd.h>

namespace fmha::harness::test {
namespace {

using testing::HasSubstr;

class EveryFamily : public testing::TestWithParam<ApiFamily> {
  protected:
    Case plain_ = plain_case(GetParam(), FMHA_CASES_DIR);
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
        Case again = load_case(c.id, FMHA_CASES_DIR);
        again.id = c.id;
        ASSERT_EQ(again, c);
    }
    EXPECT_GT(names.size(), problems * 9 / 10);
    EXPECT_GE(legal, problems * 9 / 10);
}

// No random problem tests a field that is always as in the plain case.
TEST_P(EveryFamily, EveryFieldIsDrawn) {
    std::map<std::string, std::set<std::string>> values;
    for (std::uint64_t seed = 0; seed < 3000; ++seed) {
        const Case c = random_case(plain_, seed, {});
        for (const CaseField& field : case_fields())
            if (!field.compound() && field.families.contains(GetParam()))
                values[std::string(field.name)].insert(field.print(c));
    }
    // The number of runs, the sample of rows and the expected end are no part of a problem.
    std::set<std::string> fixed{"repeats", "sampled_rows", "expect"};
    const ApiTraits& api = traits_of(GetParam());
    if (api.stores_keys) fixed.insert({"mode", "fill", "length_form_k"});
    if (api.reads_cache) fixed.insert({"v_layout", "physical_q", "physical_k", "length_form_q"});
    if (api.always_paged || api.lists_pages) fixed.insert("cache_batch_idx");
    if (api.splits_keys) fixed.insert("chunk_rows"); // their bits are not promised
    if (api.lists_pages)
        fixed.insert({"mode", "gappy", "p_drop", "dropout_seed", "dropout_offset", "store_randval", "scale_o",
                      "static_quant"});
    else if (family_of(GetParam()).random_types().scales_of_8_bits.empty() && api.reads_cache)
        fixed.insert("qscale");
    for (const auto& [field, drawn] : values) EXPECT_EQ(drawn.size() > 1, !fixed.contains(field)) << field;
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

// A fill that can decide no row is red for every kernel: few channels of 8 bits hold few ranks.
TEST(RandomCases, HaveNoMoreKeysThanAnEdgeFillHasRanks) {
    for (const ApiFamily family : {ApiFamily::fwd, ApiFamily::batch_prefill}) {
        const Case plain = plain_case(family, FMHA_CASES_DIR);
        int narrow = 0;
        for (std::uint64_t seed = 0; seed < 4000; ++seed) {
            const Case c = random_case(plain, seed, {});
            if (c.fill != Fill::edge_last && c.fill != Fill::edge_first) continue;
            for (const Fp8Flavour flavour : {Fp8Flavour::fnuz, Fp8Flavour::ocp}) {
                const auto code = EdgeCode::make(element_types(c.data_type, flavour).q,
                                                 c.qscale == QScale::mx, c.hdim_q, resolved_scale(c));
                ASSERT_TRUE(code) << c.id;
                narrow += code->capacity() <= 16 ? 1 : 0;
                for (const std::int64_t keys : c.seqlen_k) ASSERT_LE(keys, code->capacity()) << c.id;
            }
        }
        EXPECT_GT(narrow, 0) << to_string(family);
    }
}

// Red once, with kernels that are right.
TEST(RandomCases, ThatRaisedAFalseAlarmAreGreen) {
    // All weights of a head round alike.
    const auto flat = cases_of("batch_prefill/plain[hdim=88,dtype=fp8bf16,nhead_q=3,seqlen_q=47,scale_s=0.05,"
                               "sink_logits=normal,fill=indexed]@18335043467640278615");
    EXPECT_EQ(first_red(flat, launch_with(no_fault<targets::PrefillFault>)), "");
    // One weight for all rows, and powers of two for V.
    const auto equal =
        cases_of("splitkv/plain[heads=2,hdim=96,dtype=fp8bf16,seqlen_q=128,seqlen_k=1,"
                 "sink_logits=saturated,num_splits=2,qscale=pertensor,fill=zeros]@918635958205548364");
    EXPECT_EQ(first_red(equal, launch_with(no_fault<targets::CacheFault>)), "");
    // O of 8 bits within a step or two of 0.5.
    const auto averages =
        cases_of("pagedkv/plain[heads=6:2,seqlen=101:68,dtype=fp8,fill=uniform]@9604106355410138615");
    EXPECT_EQ(first_red(averages, launch_with(no_fault<targets::CacheFault>)), "");
    for (const char* const backward :
         {// dS was beyond fp16.
          "bwd/plain[hdim=112,seqlen_k=2,p_drop=0.5,fill=zeros]@1",
          // 1/255 lies half way between two numbers of bf16.
          "bwd/plain[hdim=64,dtype=bf16,nhead_q=4,seqlen_q=33,seqlen_k=255,fill=zeros]@1",
          // Scores of thousands.
          "bwd/plain[heads=6:2,hdim=24,seqlen=5:122,batch=3,mask=b:37,38,fill=edge_last]@1",
          // Few values of P, and a sink far above them.
          "bwd/plain[hdim=168,dtype=bf16,mode=group,batch=3,nhead_q=3,seqlen_q=[4,47,17],seqlen_k=[193,6,31],"
          "physical_q=[10,62,24],physical_k=[199,14,51],length_form_q=seqlen,length_form_k=seqlen,operm=bshd,"
          "stride_padding=16,p_drop=0.1,dropout_seed=979889842923318689,dropout_offset=223108188329,"
          "sink_logits=saturated,deterministic=true,fill=integers]@16163861387499382400"})
        EXPECT_EQ(first_red(cases_of(backward), launch_with(no_fault<targets::BackwardFault>)), "");
}

/// `fmha fuzz` on forward, whose kernels are these; the house's without any.
cli::test::Ran fuzz_forward(std::vector<std::string> arguments, const Launch& launch) {
    std::vector<std::unique_ptr<cli::Command>> commands;
    commands.push_back(cli::make_fuzz_command([launch](const auto& target, const std::string&,
                                                       catalog::FamilySet) -> std::unique_ptr<KernelSource> {
        const std::vector<Case> cases{plain_case(ApiFamily::fwd, FMHA_CASES_DIR)};
        if (!launch) return house_kernels(target, {}, kernel_families_of(cases));
        return kernels_that(launch, cases, "gfx950");
    }));
    arguments.insert(arguments.begin(),
                     {"fuzz", "--cases-root", FMHA_CASES_DIR, "--family", "fwd", "--minutes", "0"});
    return cli::test::run(std::move(commands), arguments);
}

TEST(FuzzCommand, IsGreenOnCorrectKernelsAndCountsEveryProblem) {
    const auto ran = fuzz_forward({"--count", "24", "--seed", "3"}, {});
    EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("seed 3"));
    EXPECT_THAT(ran.out, HasSubstr("24 generated"));
    EXPECT_THAT(ran.out, HasSubstr("   0 red   "));
    EXPECT_THAT(ran.out, HasSubstr("GREEN\n"));
    EXPECT_THAT(ran.out, HasSubstr("problems an hour"));
}

TEST(FuzzCommand, FindsAFaultyKernelAndMakesTheProblemSmaller) {
    const auto ran = fuzz_forward({"--count", "24", "--seed", "3", "--shrink", "1"},
                                  [](const KernelConfig& config, const Invocation& args) {
                                      host_target::run_fwd_with_fault(config, std::get<FwdArgs>(args),
                                                                      targets::Fault::alibi_neighbour_slope,
                                                                      {.threads = 1});
                                  });
    EXPECT_EQ(ran.code, 1) << ran.out << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("FAILED fwd/plain["));
    EXPECT_THAT(ran.out, HasSubstr("SMALLER fwd/plain[nhead_q=2,"));
    EXPECT_THAT(ran.out, HasSubstr("bias=a:0"));
    EXPECT_THAT(ran.out, HasSubstr("repeat   fmha verify 'fwd/plain["));
    EXPECT_THAT(ran.out, HasSubstr("RED\n"));
}

TEST(FuzzCommand, IsRedWhenItIsInterrupted) {
    const auto ran = fuzz_forward({"--count", "1000000"}, [](const KernelConfig&, const Invocation&) {
        kill(getppid(), SIGTERM);
        while (true) pause();
    });
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.out, HasSubstr("RED: interrupted\n"));
}

TEST(FuzzCommand, RefusesARunWithoutAnEnd) {
    const auto ran = cli::test::run({"fuzz", "--minutes", "0"});
    EXPECT_EQ(ran.code, 2);
    EXPECT_THAT(ran.err, HasSubstr("--minutes 0 needs --count"));
    EXPECT_EQ(cli::test::run({"fuzz", "--family", "backward"}).code, 2);
    // Another name of a family is as good, and less than a millisecond is no run without an end.
    for (const char* family : {"splitkv", "fwd_splitkv"})
        EXPECT_NE(cli::test::run({"fuzz", "--cases-root", FMHA_CASES_DIR, "--family", family, "--minutes",
                                  "0.000001", "--jobs", "1"})
                      .code,
                  2)
            << family;
    EXPECT_EQ(cli::test::run({"fuzz", "--jobs", "0"}).code, 2);
}

TEST(Fuzz, RefusalsAreCountedByTheirReason) {
    FuzzOptions options;
    options.plain = {plain_case(ApiFamily::fwd, FMHA_CASES_DIR)};
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
