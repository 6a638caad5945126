// Every kernel of a list has a problem that it computes, and an account by name.
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/family_traits.hpp"
#include "harness/cases/case_problem.hpp"
#include "harness/catalogue/catalogue_ledger.hpp"
#include "harness/catalogue/listed_kernels.hpp"
#include "harness/run/case_runner.hpp"
#include "kernels/arch/arch.hpp"
#include "kernels/catalog/catalog.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>

namespace fmha::harness {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::vector<ListedKernel> list_of(catalog::RuleSet rules, std::string_view arch) {
    catalog::Request request;
    request.rules = rules;
    request.targets = {ArchName(arch)};
    std::vector<ListedKernel> list;
    catalog::enumerate(arch::ArchSet::built_in(), request, [&](const KernelConfig& config) {
        list.push_back({catalog::name_of(rules, config), config});
        list.back().config.arch = arch;
    });
    return list;
}

/// Kernels of one family, every `step`-th of them.
std::vector<ListedKernel> some_of(const std::vector<ListedKernel>& list, KernelFamily family,
                                  std::size_t step) {
    std::vector<ListedKernel> own, some;
    for (const ListedKernel& kernel : list)
        if (kernel.config.signature.family == family) own.push_back(kernel);
    for (std::size_t i = 0; i < own.size(); i += step) some.push_back(own[i]);
    return some;
}

CaseResult result_of(const Witness& witness, Outcome outcome, const std::string& kernel = {}) {
    CaseResult result;
    result.name = witness.of.id;
    result.outcome = outcome;
    result.kernel = result.chosen = kernel;
    result.message = "a sentence";
    return result;
}

class ListTest : public testing::TestWithParam<std::pair<catalog::RuleSet, std::string_view>> {};

TEST_P(ListTest, EveryKernelHasOneWitnessUnderANameOfItsOwn) {
    const auto list = list_of(GetParam().first, GetParam().second);
    const auto all = witnesses(list);
    std::vector<int> times(list.size(), 0);
    std::set<std::string> names, ids;
    for (const Witness& witness : all) {
        EXPECT_TRUE(ids.insert(witness.of.id).second) << witness.of.id;
        for (const std::size_t kernel : witness.kernels) ++times.at(kernel);
    }
    EXPECT_EQ(std::ranges::count(times, 1), std::ssize(list));
    for (const ListedKernel& kernel : list) EXPECT_TRUE(names.insert(kernel.name).second) << kernel.name;
}

TEST_P(ListTest, AWitnessCrossesTwoTilesAndEndsWhereItsKernelsCanEnd) {
    const auto list = list_of(GetParam().first, GetParam().second);
    std::int64_t ragged = 0, whole = 0;
    for (const Witness& witness : witnesses(list)) {
        const Case& c = witness.of;
        for (const std::size_t i : witness.kernels) {
            const Algorithm& a = list[i].config.algorithm;
            const KernelTraits& stage = traits_of(list[i].config.signature.family);
            if (traits_of(c.family)
                    .stores_keys) { // its keys are those that it adds, and its rows come with them
                EXPECT_GT(c.append.seqlen_knew, a.tile.n0) << list[i].name;
                continue;
            }
            EXPECT_TRUE(a.max_seq_len_q > 0 || c.seqlen_q.front() > a.tile.m0) << list[i].name;
            if (stage.products != MatrixProducts::none) {
                const std::int64_t splits = stage.stores_splits ? c.split.num_splits : 1;
                EXPECT_GT(c.seqlen_k.front(), (2 * splits - 1) * a.tile.n0) << list[i].name;
                const bool ends_inside = c.seqlen_k.front() % a.tile.n0 != 0;
                EXPECT_TRUE(a.pad.sk || !ends_inside || traits_of(c.family).lists_pages ||
                            c.expect != Expectation::pass)
                    << list[i].name;
                ++(ends_inside ? ragged : whole);
            }
        }
    }
    EXPECT_GT(ragged, 0);
    EXPECT_TRUE(whole > 0 || GetParam().second == "gfx1201"); // its kernels pad everything
}

// The rules of a record are predicted from its fields; the checks of problems and kernels decide.
TEST_P(ListTest, ProblemsAndKernelsSayWhatWasPredicted) {
    const auto list = list_of(GetParam().first, GetParam().second);
    std::map<std::string, std::int64_t> refused;
    for (const Witness& witness : witnesses(list)) {
        std::string rule;
        try {
            const Problem problem = to_problem(witness.of, GetParam().second);
            for (const std::size_t i : witness.kernels) {
                StageQuery query = make_query(problem, list[i].config.signature.family);
                query.constraint.compute_units = 256;
                query.main_tile_m0 = combined_tile_rows;
                const Verdict verdict = match(query, list[i].config);
                EXPECT_EQ(static_cast<bool>(verdict), witness.of.expect == Expectation::pass)
                    << list[i].name << ": " << to_string(verdict.reason);
                EXPECT_EQ(verdict ? "" : to_string(verdict.reason), witness.of.expect_rule) << list[i].name;
            }
        } catch (const ProblemError& error) {
            EXPECT_EQ(witness.of.expect, Expectation::invalid_problem) << error.what();
            EXPECT_EQ(error.rule(), witness.of.expect_rule) << error.what();
        }
        if (witness.of.expect != Expectation::pass)
            refused[witness.of.expect_rule] += std::ssize(witness.kernels);
    }
    // Records of `house` are valid.
    if (GetParam().first == catalog::RuleSet::house) {
        EXPECT_THAT(refused, IsEmpty());
    }
    if (GetParam().first == catalog::RuleSet::claim && GetParam().second == "gfx950") {
        EXPECT_EQ(refused["D-8"], 2880);
        EXPECT_EQ(refused["B-1"], 1524);
        EXPECT_EQ(refused["hdim_q_not_padded"], 96);
        EXPECT_EQ(refused["seqlen_k_not_padded"], 0);
    }
}

INSTANTIATE_TEST_SUITE_P(Lists, ListTest,
                         testing::Values(std::pair{catalog::RuleSet::claim, "gfx950"},
                                         std::pair{catalog::RuleSet::house, "gfx950"},
                                         std::pair{catalog::RuleSet::house, "gfx1201"},
                                         std::pair{catalog::RuleSet::house, "sm_90"},
                                         std::pair{catalog::RuleSet::stored, "gfx942"},
                                         std::pair{catalog::RuleSet::ck, "gfx950"}),
                         [](const auto& list) {
                             return std::string(to_string(list.param.first)) + "_" +
                                    std::string(list.param.second);
                         });

class LedgerTest : public testing::Test {
  protected:
    const std::vector<ListedKernel> list_ =
        some_of(list_of(catalog::RuleSet::claim, "gfx950"), KernelFamily::batch_prefill, 97);
    const std::vector<Witness> all_ = witnesses(list_);

    /// The text of a run without a mistake.
    std::vector<CaseResult> good() const {
        std::vector<CaseResult> results;
        for (const Witness& witness : all_) {
            if (witness.of.expect != Expectation::pass)
                results.push_back(result_of(witness, Outcome::refused_as_predicted));
            else
                for (const std::size_t i : witness.kernels)
                    results.push_back(result_of(witness, Outcome::passed, list_[i].name));
        }
        return results;
    }
    CatalogueLedger of(const std::vector<CaseResult>& results) const {
        CatalogueLedger ledger(list_, all_, all_);
        for (const CaseResult& result : results) ledger.add(result);
        return ledger;
    }
};

TEST_F(LedgerTest, SumsToTheList) {
    const CatalogueLedger ledger = of(good());
    EXPECT_TRUE(ledger.complete());
    EXPECT_GT(ledger.count(Account::green), 0);
    EXPECT_GT(ledger.count(Account::refused), 0);
    EXPECT_EQ(ledger.count(Account::green) + ledger.count(Account::refused), std::ssize(list_));
    EXPECT_EQ(std::ranges::count(ledger.lines(), '\n'), std::ssize(list_));
}

// --waivers: it is no kernel that is green, and none that makes the run red.
TEST_F(LedgerTest, ListsAKnownFailureWithItsTracker) {
    auto results = good();
    const auto known = std::ranges::find(results, Outcome::passed, &CaseResult::outcome);
    known->outcome = Outcome::failed_as_known;
    known->tracker = "#17";
    const CatalogueLedger ledger = of(results);
    EXPECT_TRUE(ledger.complete());
    EXPECT_EQ(ledger.count(Account::listed), 1);
    EXPECT_THAT(ledger.lines(), HasSubstr(known->kernel + "\tlisted\tfailed_as_known: #17\n"));
    known->outcome = Outcome::passed_unexpectedly;
    EXPECT_FALSE(of(results).complete());
}

TEST_F(LedgerTest, NamesAKernelThatWasDropped) {
    for (const bool refused : {false, true}) {
        auto results = good();
        const auto dropped = std::ranges::find_if(
            results, [&](const CaseResult& result) { return result.kernel.empty() == refused; });
        const std::string name = dropped->name;
        results.erase(dropped);
        const CatalogueLedger ledger = of(results);
        EXPECT_FALSE(ledger.complete());
        const std::vector<std::string> missing = ledger.missing();
        ASSERT_FALSE(missing.empty());
        EXPECT_THAT(ledger.text(), HasSubstr("missing  " + missing.front()));
        EXPECT_THAT(ledger.lines(), HasSubstr(missing.front() + "\tmissing"));
    }
}

TEST_F(LedgerTest, AKernelOfNoWitnessIsMissing) {
    auto fewer = all_;
    const std::string name = list_[fewer.back().kernels.back()].name;
    fewer.back().kernels.pop_back();
    CatalogueLedger ledger(list_, fewer, fewer);
    for (const Witness& witness : fewer) ledger.add(result_of(witness, Outcome::refused_as_predicted));
    EXPECT_FALSE(ledger.complete());
    EXPECT_THAT(ledger.missing(), Contains(name));
}

TEST_F(LedgerTest, SaysWhatIsRedAndWhatWasNotRun) {
    auto results = good();
    const auto ran = std::ranges::find_if(results, [](const auto& r) { return !r.kernel.empty(); });
    ran->outcome = Outcome::failed;
    EXPECT_FALSE(of(results).complete());
    EXPECT_EQ(of(results).count(Account::red), 1);
    EXPECT_THAT(of(results).lines(), HasSubstr(ran->kernel + "\tred\tfailed: a sentence"));
    ran->outcome = Outcome::not_run;
    ran->not_run_reason = NotRunReason::not_built;
    EXPECT_TRUE(of(results).complete());
    EXPECT_THAT(of(results).text(), HasSubstr("1 listed by not_built: a sentence"));
}

TEST_F(LedgerTest, NoticesASecondAccount) {
    auto results = good();
    results.push_back(results.back());
    const CatalogueLedger ledger = of(results);
    EXPECT_FALSE(ledger.complete());
    EXPECT_THAT(ledger.text(), HasSubstr("accounted for twice"));
}

TEST_F(LedgerTest, AnAbsentTypeIsNotGreenAndALaterStageTakesNoVerdictBack) {
    const std::vector<Witness> asked{*std::ranges::find(
        all_, Expectation::pass, [](const Witness& witness) { return witness.of.expect; })};
    CatalogueLedger absent(list_, all_, asked);
    absent.add(result_of(asked.front(), Outcome::type_absent));
    EXPECT_EQ(absent.count(Account::listed), std::ssize(asked.front().kernels));
    EXPECT_EQ(absent.count(Account::green), 0);

    CatalogueLedger ledger(list_, all_, asked);
    const std::string name = list_[asked.front().kernels.front()].name;
    ledger.add(result_of(asked.front(), Outcome::failed, name));
    CaseResult beside = result_of(asked.front(), Outcome::passed, name);
    beside.chosen = "another stage's kernel";
    ledger.add(beside);
    EXPECT_EQ(ledger.count(Account::red), 1);
}

TEST_F(LedgerTest, LeavesTheKernelsOfOtherShardsOut) {
    const std::vector<Witness> asked{all_.front()};
    CatalogueLedger ledger(list_, all_, asked);
    ledger.add(result_of(asked.front(), Outcome::refused_as_predicted));
    EXPECT_TRUE(ledger.complete());
    EXPECT_EQ(ledger.count(Account::elsewhere), std::ssize(list_) - std::ssize(asked.front().kernels));
    EXPECT_THROW(ledger.add(result_of(all_.back(), Outcome::passed)), Error);
}

// A kernel that other candidates are planned around has the account of its own candidate, if it has one.
TEST(StagesLedger, PrefersTheResultThatIsAboutTheKernel) {
    const auto list = some_of(list_of(catalog::RuleSet::claim, "gfx950"), KernelFamily::bwd_convert_dq, 1000);
    ASSERT_THAT(list, SizeIs(1));
    const auto all = witnesses(list);
    CatalogueLedger ledger(list, all, all);
    CaseResult around = result_of(all[0], Outcome::failed, "dot + main + " + list[0].name);
    around.chosen = "main";
    ledger.add(around);
    EXPECT_EQ(ledger.count(Account::red), 1);
    CaseResult about = result_of(all[0], Outcome::passed, "dot + other + " + list[0].name);
    about.chosen = list[0].name;
    ledger.add(about);
    EXPECT_EQ(ledger.count(Account::green), 1);
    EXPECT_TRUE(ledger.complete());
}

/// Kernels that write nothing.
class IdleTarget final : public Target {
  public:
    std::string_view name() const override { return "idle"; }
    const std::string& arch() const override { return arch_; }
    std::optional<std::string> cannot_execute(const KernelConfig&) const override { return std::nullopt; }
    StageKernel make(const KernelConfig& config) const override {
        return {{}, std::make_shared<Idle>(config), {}};
    }

  private:
    class Idle final : public KernelInstance {
      public:
        explicit Idle(const KernelConfig& config) : config_(config) {}
        const KernelConfig& config() const override { return config_; }
        std::string name() const override { return "idle"; }
        void launch(const Invocation&, Stream) const override {}

      private:
        KernelConfig config_;
    };
    std::string arch_ = "gfx950";
};

TEST(ListedKernels, AreRedWhenTheyWriteNothing) {
    const auto list = some_of(list_of(catalog::RuleSet::claim, "gfx950"), KernelFamily::fwd_pagedkv, 60);
    const auto all = witnesses(list);
    const ListedKernels source(list, all, all, std::make_shared<IdleTarget>());
    CatalogueLedger ledger(list, all, all);
    CaseRunOptions options;
    options.all_kernels = true;
    options.given.catalogue = "claim";
    for (const Witness& witness : all)
        for (const CaseResult& result : run_case(witness.of, source, options)) {
            EXPECT_THAT(result.reproduce, HasSubstr("--catalogue --rules claim"));
            ledger.add(result);
        }
    EXPECT_EQ(ledger.count(Account::red), std::ssize(list));
    EXPECT_FALSE(ledger.complete());
}

TEST(ListedKernels, AreRedWhenARefusalWasNotPredicted) {
    const auto list = some_of(list_of(catalog::RuleSet::claim, "gfx950"), KernelFamily::batch_prefill, 2000);
    auto all = witnesses(list);
    std::erase_if(all, [](const Witness& witness) { return witness.of.expect == Expectation::pass; });
    ASSERT_FALSE(all.empty());
    Witness& forbidden = all.front();
    const auto outcome = [&] {
        return run_case(forbidden.of, ListedKernels(list, all, all, std::make_shared<IdleTarget>()), {})
            .front()
            .outcome;
    };
    EXPECT_EQ(outcome(), Outcome::refused_as_predicted);
    forbidden.of.expect_rule = "Z-9";
    EXPECT_EQ(outcome(), Outcome::refused_unexpectedly);
}

// Their rows are whole tiles of a main kernel that does not run in their witness.
TEST(ListedKernels, CombinePartialResultsWithoutRowPadding) {
    const auto house = list_of(catalog::RuleSet::house, "gfx950");
    std::vector<ListedKernel> whole;
    for (const ListedKernel& kernel : house)
        if (kernel.config.signature.family == KernelFamily::fwd_splitkv_combine &&
            !kernel.config.algorithm.pad.s)
            whole.push_back(kernel);
    ASSERT_FALSE(whole.empty());
    const auto all = witnesses(whole);
    const ListedKernels source(whole, all, all, std::make_shared<IdleTarget>());
    CaseRunOptions options;
    options.all_kernels = true;
    for (const Witness& witness : all)
        for (const CaseResult& result : run_case(witness.of, source, options))
            EXPECT_NE(result.outcome, Outcome::refused_unexpectedly) << result.message;
}

TEST(ListedKernels, AreRefusedWithTheConditionThatAWitnessMisses) {
    const auto house = list_of(catalog::RuleSet::house, "gfx950");
    std::vector<ListedKernel> whole;
    for (const ListedKernel& kernel : house)
        if (kernel.config.signature.family == KernelFamily::fwd && !kernel.config.algorithm.pad.sk &&
            whole.empty())
            whole.push_back(kernel);
    auto all = witnesses(whole);
    all.front().of.seqlen_k.front() -= 2;
    const ListedKernels source(whole, all, all, std::make_shared<IdleTarget>());
    CaseRunOptions options;
    options.all_kernels = true;
    const auto results = run_case(all.front().of, source, options);
    ASSERT_THAT(results, SizeIs(1));
    EXPECT_EQ(results[0].outcome, Outcome::refused_unexpectedly);
    EXPECT_THAT(results[0].message, HasSubstr("this kernel has no key tail"));
}

} // namespace
} // namespace fmha::harness
