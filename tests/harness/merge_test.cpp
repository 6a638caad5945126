// Shards, in any files, become the run that one process would have made; missing and doubled cases are named.

#include "dispatcher/system/files.hpp"
#include "dispatcher/types/error.hpp"
#include "harness/cases/load.hpp"
#include "harness/results/merge.hpp"
#include "harness/store/store.hpp"
#include "tests/harness/spoiled_tail.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>

namespace fmha::cli {
namespace {

using test::Ran;
using test::Scratch;
using testing::HasSubstr;
using testing::Not;

Ran verify(const std::vector<std::string>& more) {
    return test::verify_tails({15, 31, 33, 63, 65}, more);
}

Ran merge(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "merge");
    return test::run(arguments);
}

/// Shard 1 as a report, 2 as a journal, 3 in a store.
std::vector<std::string> three_shards(const Scratch& folder) {
    verify({"--jobs", "1", "--shard", "1/3", "--json", folder / "1.json"});
    verify({"--jobs", "1", "--shard", "2/3", "--journal", folder / "2.jsonl"});
    verify({"--jobs", "1", "--shard", "3/3", "--store", folder / "3.db"});
    return {folder / "1.json", folder / "2.jsonl", folder / "3.db"};
}

TEST(Merge, CountsTheCasesOfTheRun) {
    const harness::Part part{"1.json", Json{{"shards", 1}, {"shard", 1}, {"cases", 2}}, {}};
    EXPECT_THAT(harness::merge({part}).problems,
                testing::ElementsAre("the run has 2 cases, the files have 0"));
}

TEST(Merge, NamesSomeOfManyMissingShardsAndBelievesNoDamagedNumber) {
    harness::Part part{"1.json", Json{{"shards", 40}, {"shard", 1}, {"cases", 0}}, {}};
    EXPECT_THAT(
        harness::merge({part}).problems,
        testing::ElementsAre(
            "shards 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21 and 19 others "
            "of 40 are missing"));
    part.identity["shards"] = std::uint64_t{21'474'836'471};
    try {
        static_cast<void>(harness::merge({part}));
        FAIL();
    } catch (const InputError& error) {
        EXPECT_STREQ(error.what(), "1.json: says that its run has 21474836471 shards; allowed: 1 to 1000000");
    }
}

TEST(Merge, JoinsAReportAJournalAndAStore) {
    const Scratch folder;
    auto files = three_shards(folder);
    files.insert(files.end(), {"--store", folder / "all.db", "--json", folder / "all.json", "--junit",
                               folder / "all.xml"});
    for (int again = 0; again < 2; ++again) {
        const Ran ran = merge(files);
        EXPECT_EQ(ran.code, 1) << ran.err;
        EXPECT_THAT(ran.out, HasSubstr("5 asked   4 passed   1 failed"));
        EXPECT_THAT(ran.out, HasSubstr("FAILED fwd/ragged_tail[hdim=64,dtype=fp16,seqlen_k=33"));
        EXPECT_THAT(ran.out, Not(HasSubstr("RED: ")));
    }
    EXPECT_THAT(system::read_file(folder / "all.xml"), HasSubstr("tests=\"5\" failures=\"1\""));
    const store::Store all(folder / "all.db", store::Access::read);
    ASSERT_EQ(all.runs().size(), 1U) << "merging twice tells it once";
    EXPECT_EQ(all.runs()[0].shards, 1);
    EXPECT_EQ(all.runs()[0].target, "host");
    EXPECT_EQ(all.results(all.runs()[0].id).size(), 5U);
}

TEST(Merge, PrintsTheReportForPrograms) {
    const Scratch folder;
    auto files = three_shards(folder);
    files.insert(files.end(), {"--format", "json", "--json", folder / "all.json"});
    const Ran ran = merge(files);
    EXPECT_EQ(ran.code, 1) << ran.err;
    EXPECT_EQ(ran.out, system::read_file(folder / "all.json"));
    EXPECT_THAT(ran.out, HasSubstr("\"schema\": \"fmha-verify-1\""));
}

TEST(Merge, ReadsTheReportThatItWrote) {
    const Scratch folder;
    auto files = three_shards(folder);
    files.insert(files.end(), {"--store", folder / "all.db", "--json", folder / "all.json"});
    merge(files);
    for (const auto& again : {std::vector{folder / "all.json"}, {folder / "all.json", folder / "all.db"}}) {
        const Ran ran = merge(again);
        EXPECT_EQ(ran.code, 1) << ran.err;
        EXPECT_THAT(ran.out, HasSubstr("1 run of 1 shard\n5 asked   4 passed   1 failed"));
        EXPECT_THAT(ran.out, Not(HasSubstr("RED: ")));
    }
    merge({files[0], files[1], "--json", folder / "part.json"});
    const Ran part = merge({folder / "part.json", files[2]});
    EXPECT_EQ(part.code, 2) << part.out;
    EXPECT_THAT(part.err, HasSubstr("part.json: was joined from shards that are not the whole run"));
}

TEST(Merge, RefusesASecondResultOfOneKernelOnOneCase) {
    const Scratch folder;
    verify({"--jobs", "1", "--json", folder / "run.json"});
    Json run = Json::parse(system::read_file(folder / "run.json"));
    run["results"].push_back(run["results"][0]);
    system::write_file(folder / "run.json", run.dump());
    const Ran ran = merge({folder / "run.json"});
    EXPECT_EQ(ran.code, 2) << ran.out;
    EXPECT_THAT(ran.err, HasSubstr("run.json: fwd/ragged_tail[hdim=64,dtype=fp16,seqlen_k=15,mask=0,"
                                   "fill=indexed]@1 has two results of kernel "));
}

TEST(Merge, RefusesAJournalWithTwoLinesOfOneCase) {
    const Scratch folder;
    const std::string file = folder / "run.jsonl";
    verify({"--jobs", "1", "--journal", file});
    const std::string text = system::read_file(file);
    const auto begin = text.find('\n') + 1;
    system::write_file(file, text + text.substr(begin, text.find('\n', begin) + 1 - begin));
    const Ran ran = merge({file});
    EXPECT_EQ(ran.code, 2) << ran.out;
    EXPECT_THAT(ran.err, HasSubstr("run.jsonl: line 7: fwd/ragged_tail[hdim=64,dtype=fp16,seqlen_k=15,mask=0,"
                                   "fill=indexed]@1 has an earlier line"));
    EXPECT_EQ(verify({"--jobs", "1", "--journal", file}).code, 2);
}

TEST(Merge, AFullDiskTakesOneFileAndNoOther) {
    const Scratch folder;
    auto files = three_shards(folder);
    files.insert(files.end(), {"--json", "/dev/full", "--html", "/dev/full", "--junit", folder / "all.xml",
                               "--store", folder / "all.db"});
    const Ran ran = merge(files);
    EXPECT_EQ(ran.code, 2);
    EXPECT_THAT(ran.err, HasSubstr("/dev/full: cannot be written: No space left on device; /dev/full: "));
    EXPECT_THAT(system::read_file(folder / "all.xml"), HasSubstr("tests=\"5\" failures=\"1\""));
    EXPECT_EQ(store::Store(folder / "all.db", store::Access::read).runs().size(), 1U);
}

TEST(Merge, NamesMissingShards) {
    const Scratch folder;
    const auto files = three_shards(folder);
    const Ran ran = merge({files[1], "--store", folder / "all.db"});
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.out, HasSubstr("RED: shards 1, 3 of 3 are missing\n"));
    EXPECT_THAT(ran.out, Not(HasSubstr("GREEN")));
    EXPECT_FALSE(std::filesystem::exists(folder / "all.db")) << "half a run is no run";
}

// Cases of which no kernel has the name of --kernel were looked at, whichever file says so, and in the joined report as well.
TEST(Merge, MissesNoCaseThatHadNothingToRun) {
    const Scratch folder;
    const auto shard = [&](const char* which, const std::vector<std::string>& file) {
        std::vector<std::string> line{"verify", "--cases-root", FMHA_CASES_DIR, "--kernels", "all"};
        line.insert(line.end(), {"--kernel", "*_h64x64_*", "--jobs", "1", "--shard", which});
        line.insert(line.end(), {"--html", folder / "page.html"});
        for (const char* name :
             {"[hdim=64]", "[hdim=64,seqlen_k=70]", "[hdim=128]", "[hdim=128,seqlen_k=70]"})
            line.push_back(fmt::format("fwd/plain{}@1", name));
        line.insert(line.end(), file.begin(), file.end());
        const Ran ran = test::run(line);
        EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
    };
    shard("1/1", {"--journal", folder / "1.jsonl", "--json", folder / "1.json", "--store", folder / "1.db"});
    for (const char* file : {"1.jsonl", "1.json", "1.db"}) {
        const Ran ran = merge({folder / file});
        EXPECT_EQ(ran.code, 0) << file << ran.out;
        EXPECT_THAT(ran.out, Not(HasSubstr("RED: "))) << file;
    }
    for (const char* half : {"1/2", "2/2"}) shard(half, {"--store", folder / "2.db"});
    merge({folder / "2.db", "--json", folder / "all.json", "--store", folder / "all.db"});
    for (const char* file : {"all.json", "all.db"}) {
        const Ran ran = merge({folder / file});
        EXPECT_EQ(ran.code, 0) << file << ran.out << ran.err;
    }
    // A case that the file does not speak of is missing as ever.
    Json run = Json::parse(system::read_file(folder / "1.json"));
    run["identity"]["cases_without_results"] = Json::array();
    system::write_file(folder / "1.json", run.dump());
    EXPECT_THAT(merge({folder / "1.json"}).out, HasSubstr("1.json: 2 of the 4 cases of shard 1 are missing"));
    run["identity"]["cases_without_results"] = 7;
    system::write_file(folder / "1.json", run.dump());
    EXPECT_THAT(merge({folder / "1.json"}).err, HasSubstr("1.json: cases_without_results of its identity: "));
}

TEST(Merge, NamesAShardThatWasKilled) {
    const Scratch folder;
    const auto files = three_shards(folder);
    const std::string text = system::read_file(files[1]);
    system::write_file(files[1], text.substr(0, text.size() - 20));
    const Ran ran = merge(files);
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.out, HasSubstr("2.jsonl: 1 of the 2 cases of shard 2 are missing"));
}

TEST(Merge, TakesSeveralFilesOfOneRunOnceAndTwoRunsOfOneShardNot) {
    const Scratch folder;
    auto files = three_shards(folder);
    files.push_back(files[1]);
    EXPECT_THAT(merge(files).out, HasSubstr("3 runs of 3 shards\n5 asked"));
    verify({"--jobs", "1", "--shard", "2/3", "--journal", folder / "again.jsonl"});
    files.back() = folder / "again.jsonl";
    const Ran ran = merge(files);
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.out, HasSubstr("RED: shard 2 was run twice: "));
    EXPECT_THAT(ran.out, Not(HasSubstr("stands in"))) << "its cases are not listed once more";
    verify({"--jobs", "1", "--json", folder / "whole.json"});
    EXPECT_THAT(merge({folder / "whole.json"}).out, HasSubstr("1 run of 1 shard\n5 asked"));
}

TEST(Merge, NamesSomeOfManyCasesThatStandInTwoShards) {
    std::vector<harness::Part> parts;
    for (const int shard : {1, 2}) {
        parts.push_back({fmt::format("{}.json", shard),
                         Json{{"shards", 2}, {"shard", shard}, {"shard_cases", 25}, {"cases", 50}},
                         {}});
        for (int i = 10; i < 35; ++i) {
            parts.back().results.emplace_back();
            parts.back().results.back().name = fmt::format("case{}", i);
        }
    }
    const auto problems = harness::merge(parts).problems;
    ASSERT_EQ(problems.size(), 21U);
    EXPECT_EQ(problems.front(), "case10 stands in 1.json and in 2.json");
    EXPECT_EQ(problems.back(), "5 other cases stand in two shards");
}

TEST(Merge, RefusesShardsOfDifferentRunsAndOtherFiles) {
    const Scratch folder;
    const auto files = three_shards(folder);
    verify({"--jobs", "1", "--shard", "3/3", "--repeats", "3", "--json", folder / "other.json"});
    const Ran ran = merge({files[0], files[1], folder / "other.json"});
    EXPECT_EQ(ran.code, 2);
    EXPECT_THAT(ran.err, HasSubstr("repeats is 0 there and 3 here"));
    for (const char* text : {"{}", "{\"journal\":\"fmha-bench-journal-1\"}\n{\"row\":1}\n{\"row\":2}\n"}) {
        system::write_file(folder / "text", text);
        EXPECT_THAT(merge({folder / "text"}).err,
                    HasSubstr("is neither a report (--json) nor a journal nor a store"));
    }
    EXPECT_THAT(merge({}).err, HasSubstr("there is nothing to merge"));
}

// The joined run has the identity of an undivided one, which the next merge would call run twice.
TEST(Merge, RefusesTheStoreThatItReads) {
    const Scratch folder;
    const std::string file = folder / "runs.db";
    verify({"--jobs", "1", "--store", file});
    const Ran ran = merge({file, "--store", folder / "./runs.db"});
    EXPECT_EQ(ran.code, 2);
    EXPECT_EQ(ran.out, "");
    EXPECT_THAT(ran.err, HasSubstr("runs.db: FILES names the same file"));
    EXPECT_EQ(store::Store(file, store::Access::read).runs().size(), 1U);
    EXPECT_THAT(merge({file}).out, HasSubstr("1 run of 1 shard\n5 asked"));
}

TEST(Merge, NamesTheFileOfAResultThatCannotBeRead) {
    const Scratch folder;
    verify({"--jobs", "1", "--json", folder / "run.json"});
    Json run = Json::parse(system::read_file(folder / "run.json"));
    run["results"] = Json::array({{{"name", "fwd/tiny@1"}}});
    system::write_file(folder / "run.json", run.dump());
    const Ran ran = merge({folder / "run.json"});
    EXPECT_EQ(ran.code, 2);
    EXPECT_THAT(ran.err, HasSubstr("run.json: a result cannot be read: key \"outcome\" is missing"));
}

TEST(Merge, RefusesOtherKindsOfValuesThanReportsHave) {
    const Scratch folder;
    verify({"--jobs", "1", "--json", folder / "run.json"});
    const Json whole = Json::parse(system::read_file(folder / "run.json"));
    const auto said = [&](const std::function<void(Json&)>& change) {
        Json run = whole;
        change(run);
        system::write_file(folder / "run.json", run.dump());
        const Ran ran = merge({folder / "run.json"});
        EXPECT_EQ(ran.code, 2) << ran.out;
        return ran.err;
    };
    const auto first = [](Json& run) -> Json& { return run["results"][0]; };
    EXPECT_THAT(said([&](Json& run) { first(run)["gates"] = 7; }),
                HasSubstr("run.json: \"gates\" is 7, expected an array"));
    EXPECT_THAT(said([&](Json& run) { first(run)["gates"] = Json::object(); }), HasSubstr("\"gates\" is {}"));
    EXPECT_THAT(said([&](Json& run) { first(run)["tiles"] = "none"; }), HasSubstr("\"tiles\" is \"none\""));
    EXPECT_THAT(said([&](Json& run) { first(run)["family"] = "forward"; }),
                HasSubstr("run.json: \"family\" is \"forward\"; allowed: fwd, "));
    EXPECT_THAT(said([&](Json& run) { first(run)["tier"] = ""; }),
                HasSubstr("\"tier\" is \"\"; allowed: smoke, full or nightly"));
    EXPECT_THAT(said([&](Json& run) { first(run)["outcome"] = "fine"; }),
                HasSubstr("\"outcome\" is \"fine\"; allowed: passed, "));
    EXPECT_THAT(said([&](Json& run) { first(run)["worst"] = true; }), HasSubstr("expected an array"));
    EXPECT_THAT(said([&](Json& run) { first(run)["seconds"] = "long"; }),
                HasSubstr("\"long\" is no number; allowed beside numbers: nan, inf, -inf"));
    EXPECT_THAT(said([](Json& run) { run["results"] = 7; }),
                HasSubstr("the results are 7, expected an array"));
    EXPECT_THAT(said([](Json& run) { run["identity"] = 7; }),
                HasSubstr("the identity is 7, expected an object"));
    EXPECT_THAT(said([](Json& run) { run["identity"]["version"] = 7; }),
                HasSubstr("run.json: version of its identity: "));
    EXPECT_THAT(said([](Json& run) { run["identity"]["target_name"] = Json::array(); }),
                HasSubstr("run.json: target_name of its identity: "));
    EXPECT_THAT(said([](Json& run) { run["identity"]["catalogue"] = 7; }),
                HasSubstr("run.json: catalogue of its identity: "));
    EXPECT_THAT(said([](Json& run) { run["identity"]["shard"] = "x"; }), HasSubstr("run.json"));
    EXPECT_THAT(said([](Json& run) { run["identity"]["cases"] = Json::array(); }), HasSubstr("run.json"));
}

TEST(Merge, SaysThatItsStoreIsNoneBeforeTheWork) {
    const Scratch folder;
    auto files = three_shards(folder);
    system::write_file(folder / "text",
                       "no store, but longer than the header of one: " + std::string(200, '.'));
    for (const std::string& bad : {folder / "text", folder / "", folder / "text/in_a_file"}) {
        auto arguments = files;
        arguments.insert(arguments.end(), {"--store", bad, "--json", folder / "all.json"});
        const Ran ran = merge(arguments);
        EXPECT_EQ(ran.code, 2) << bad;
        EXPECT_EQ(ran.out, "") << bad;
        EXPECT_THAT(ran.err, HasSubstr(bad));
        EXPECT_FALSE(std::filesystem::exists(folder / "all.json")) << bad;
    }
    // Where there is nothing to remember, no store appears.
    EXPECT_EQ(merge({files[0], "--store", folder / "new.db"}).code, 1);
    EXPECT_FALSE(std::filesystem::exists(folder / "new.db"));
}

TEST(BalancedShards, TakeEquallyLong) {
    std::vector<harness::Case> cases(40);
    std::map<std::string, double> seconds;
    for (std::size_t i = 0; i < cases.size(); ++i) {
        cases[i].id = fmt::format("fwd/a[n={}]@1", i);
        if (i % 4 != 3)
            seconds[fmt::format("fwd/a[n={}]", i)] = i == 0 ? 10.0 : 1.0; // every fourth is unknown
    }
    const auto shards = harness::balanced_shards(cases, 4, seconds);
    std::vector<double> load(4, 0.0);
    for (std::size_t i = 0; i < cases.size(); ++i) load.at(shards[i] - 1) += i == 0 ? 10.0 : 1.0;
    EXPECT_LE(*std::max_element(load.begin(), load.end()) - *std::min_element(load.begin(), load.end()), 1.0);
    EXPECT_EQ(harness::balanced_shards(cases, 4, {}).size(), 40U);
}

TEST(BalancedShards, ByTheTimesOfAStoreCoverEveryCaseOnce) {
    const Scratch folder;
    const std::string file = folder / "runs.db";
    EXPECT_EQ(verify({"--jobs", "1", "--store", file}).code, 1);
    std::vector<std::string> parts;
    for (const char* shard : {"1/2", "2/2"}) {
        parts.push_back(folder / fmt::format("{}.jsonl", shard[0]));
        verify({"--jobs", "1", "--shard", shard, "--store", file, "--journal", parts.back()});
    }
    EXPECT_THAT(merge(parts).out, HasSubstr("5 asked   4 passed   1 failed"));
    EXPECT_THAT(system::read_file(parts[0]), HasSubstr("\"balance_sha256\":\""));
    EXPECT_THAT(system::read_file(parts[0]), Not(HasSubstr("\"balance_sha256\":\"\"")));
}

} // namespace
} // namespace fmha::cli
