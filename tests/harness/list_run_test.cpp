// Runs of every kernel of a list: the account of its kernels, also of several shards, and the file of --ledger.

#include "dispatcher/system/files.hpp"
#include "dispatcher/types/json.hpp"
#include "harness/store/store.hpp"
#include "tests/harness/spoiled_tail.hpp"

#include <gmock/gmock.h>

namespace fmha::cli {
namespace {

using test::Ran;
using test::Scratch;
using testing::HasSubstr;
using testing::Not;

/// Every kernel of a stage of the list; some are refused.
Ran verify_list(const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"verify",  "--catalogue",    "--rules",  "house",
                                       "--arch",  "gfx950",         "--family", "fwd_splitkv_combine",
                                       "--where", "c.hdim_v == 32", "--jobs",   "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return test::run(arguments);
}

TEST(MergeCatalogue, AccountsForTheKernelsOfAllShards) {
    const Scratch folder;
    const Ran whole = verify_list({"--ledger", folder / "whole.tsv", "--json", folder / "whole.json"});
    ASSERT_EQ(whole.code, 0) << whole.err << whole.out;
    EXPECT_EQ(verify_list({"--shard", "1/2", "--journal", folder / "1.jsonl"}).code, 0);
    EXPECT_EQ(verify_list({"--shard", "2/2", "--store", folder / "2.db"}).code, 0);
    const Ran ran = test::run({"merge", folder / "1.jsonl", folder / "2.db", "--ledger",
                               folder / "merged.tsv", "--store", folder / "all.db"});
    EXPECT_EQ(ran.code, 0) << ran.err << ran.out;
    EXPECT_THAT(ran.out, HasSubstr("fwd_splitkv_combine"));
    EXPECT_THAT(ran.out, HasSubstr("GREEN"));
    EXPECT_EQ(system::read_file(folder / "merged.tsv"), system::read_file(folder / "whole.tsv"));
    const auto runs = store::Store(folder / "all.db", store::Access::read).runs();
    const auto shards = store::Store(folder / "2.db", store::Access::read).runs();
    EXPECT_EQ(runs.at(0).compiler, shards.at(0).compiler);
    EXPECT_EQ(runs.at(0).driver, shards.at(0).driver);
    EXPECT_EQ(runs.at(0).verdict, "green");
}

TEST(MergeCatalogue, IsRedByAKernelThatNoShardSpeaksOf) {
    const Scratch folder;
    ASSERT_EQ(verify_list({"--json", folder / "run.json"}).code, 0);
    Json run = Json::parse(system::read_file(folder / "run.json"));
    Json kept = Json::array();
    bool dropped = false;
    for (std::size_t i = 0; i < run.at("results").size(); ++i) {
        const Json& result = run.at("results")[i];
        // The case still has a result, so that only the account of the kernels can notice.
        const bool second = i > 0 && run.at("results")[i - 1].at("name") == result.at("name");
        if (second && !dropped)
            dropped = true;
        else
            kept.push_back(result);
    }
    ASSERT_TRUE(dropped);
    run["results"] = std::move(kept);
    system::write_file(folder / "run.json", run.dump());
    const Ran ran = test::run({"merge", folder / "run.json", "--store", folder / "all.db"});
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.out, HasSubstr("RED: kernels of the list: 1 missing\n"));
    EXPECT_THAT(ran.out, Not(HasSubstr("GREEN")));
    EXPECT_EQ(store::Store(folder / "all.db", store::Access::read).runs().at(0).verdict, "red");
}

TEST(MergeCatalogue, RefusesAListThatIsNotTheShards) {
    const Scratch folder;
    ASSERT_EQ(verify_list({"--json", folder / "run.json"}).code, 0);
    Json run = Json::parse(system::read_file(folder / "run.json"));
    run["identity"]["cases_sha256"] = "0";
    system::write_file(folder / "run.json", run.dump());
    EXPECT_THAT(test::run({"merge", folder / "run.json"}).err,
                HasSubstr("has other kernels in this program"));
    run["identity"]["catalogue"] = Json::array({"--nonsense"});
    system::write_file(folder / "run.json", run.dump());
    const auto said = [&] {
        const Ran ran = test::run({"merge", folder / "run.json"});
        EXPECT_EQ(ran.code, 2);
        return ran.err;
    };
    const std::string place = "fmha merge: " + folder / "run.json" + ": ";
    EXPECT_THAT(said(), testing::StartsWith(place + "catalogue of its identity: "));
    run["identity"]["catalogue"] = 7;
    system::write_file(folder / "run.json", run.dump());
    EXPECT_THAT(said(), testing::StartsWith(place + "catalogue of its identity: "));
    run["identity"]["catalogue"] = Json::array({"--catalogue"});
    run["identity"]["arch"] = 7;
    system::write_file(folder / "run.json", run.dump());
    EXPECT_THAT(said(), testing::StartsWith(place + "arch of its identity: "));
    test::verify_tails({15}, {"--jobs", "1", "--json", folder / "cases.json"});
    EXPECT_THAT(test::run({"merge", folder / "cases.json", "--ledger", folder / "l.tsv"}).err,
                HasSubstr("--ledger: these are no shards of a run with --catalogue"));
}

TEST(VerifyCatalogue, ChecksItsLedgerFileBeforeTheWork) {
    const Scratch folder;
    for (const auto& [more, sentence] :
         {std::pair{std::vector<std::string>{"--ledger", folder / "x", "--json", folder / "x"},
                    "--ledger names the same file"},
          {{"--ledger", folder / "no/"}, "no/"}}) {
        const Ran ran = verify_list(more);
        EXPECT_EQ(ran.code, 2);
        EXPECT_EQ(ran.out, "");
        EXPECT_THAT(ran.err, HasSubstr(sentence));
    }
    const Ran cases = test::verify_tails({15}, {"--ledger", folder / "x"});
    EXPECT_EQ(cases.code, 2);
    EXPECT_THAT(cases.err, HasSubstr("--ledger needs --catalogue"));
    // A disk that is full afterwards takes the ledger, and not the verdict that the store keeps.
    const Ran full =
        verify_list({"--ledger", "/dev/full", "--json", "/dev/full", "--store", folder / "runs.db"});
    EXPECT_EQ(full.code, 2);
    EXPECT_THAT(full.err, HasSubstr("/dev/full: cannot be written: No space left on device; /dev/full: "));
    EXPECT_THAT(full.out, HasSubstr("GREEN"));
    EXPECT_EQ(store::Store(folder / "runs.db", store::Access::read).runs().at(0).verdict, "green");
}

// A sample of refusals would say nothing about a family.
TEST(VerifyCatalogue, SamplesKernelsThatRun) {
    const Ran ran = test::run({"verify", "--catalogue", "--rules", "claim", "--arch", "gfx950", "--family",
                               "batch_prefill", "--sample", "4", "--jobs", "1"});
    EXPECT_EQ(ran.code, 0) << ran.err << ran.out;
    EXPECT_THAT(ran.out, HasSubstr("4 asked   4 passed"));
}

TEST(VerifyCatalogue, IsRedWhenEveryKernelIsRefused) {
    const Ran ran = test::run({"verify", "--catalogue", "--rules", "claim", "--arch", "gfx950", "--family",
                               "batch_prefill", "--where",
                               "c.has_dropout and c.hdim_q == 128 and c.mask == 'no'", "--jobs", "1"});
    EXPECT_EQ(ran.code, 1) << ran.err << ran.out;
    EXPECT_THAT(ran.out, HasSubstr("RED: nothing was executed, every kernel"));
    EXPECT_THAT(ran.out, Not(HasSubstr("GREEN")));
}

} // namespace
} // namespace fmha::cli
