// A benchmark in worker processes: a kernel that crashes, hangs or is wrong costs its own row, and the files of upstream's tile
// engine never have a number of it.

#include "dispatcher/system/files.hpp"
#include "dispatcher/system/process.hpp"
#include "dispatcher/types/error.hpp"
#include "harness/bench/bench_run.hpp"
#include "harness/bench/problem_cases.hpp"
#include "harness/bench/tile_engine_files.hpp"
#include "harness/cases/shape_ranges.hpp"
#include "harness/run/catalogue_kernels.hpp"
#include "kernels/catalog/catalog.hpp"
#include "tests/harness/gate_support.hpp"
#include "tests/harness/kernels_for_tests.hpp"

#include <gmock/gmock.h>

#include <array>
#include <csignal>
#include <limits>
#include <map>
#include <sstream>
#include <unistd.h>

namespace fmha::harness::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// One kernel that is right with one entry, crashes with two, hangs with three and is wrong with four.
class MoodyKernel final : public KernelSource {
  public:
    StageKernel planned(const Problem& problem, const KernelConfig* main) const override {
        return kernel_.planned(problem, main);
    }
    std::vector<StageKernel> accepting(const Problem& problem, const KernelConfig* main) const override {
        return {planned(problem, main)};
    }

  private:
    SpoiledKernel kernel_{[](const FwdArgs& args) {
        if (args.shape.batch == 2) raise(SIGSEGV);
        while (args.shape.batch == 3) pause();
        if (args.shape.batch == 4) static_cast<std::uint16_t*>(args.o.data)[5] ^= 0x4000;
    }};
};

std::vector<Case> four_cases() {
    std::vector<Case> cases;
    for (std::int64_t batch = 1; batch <= 4; ++batch) {
        Case c = small_case();
        c.batch = batch;
        c.id = "moody" + std::to_string(batch);
        cases.push_back(c);
    }
    return cases;
}

struct Rows {
    std::vector<std::pair<std::size_t, BenchRow>> rows;
    BenchEnd end;

    std::vector<TileEngineRow> for_files(const std::vector<Case>& cases) const {
        std::vector<TileEngineRow> list;
        for (const auto& [c, row] : rows) list.push_back({&cases[c], &row});
        return list;
    }
};

/// The host, whose ceilings take seconds to measure.
class WithoutCeilings : public TimingTarget {
  public:
    const std::shared_ptr<const Target>& target() const override { return host_->target(); }
    std::string machine() const override { return host_->machine(); }
    std::unique_ptr<TimedKernel> prepare(const TimedCase& timed) override { return host_->prepare(timed); }
    Ceiling matrix_ceiling(DataType) override { return {}; }
    Ceiling copy_ceiling() override { return {}; }

  private:
    std::unique_ptr<TimingTarget> host_ = time_on_host({});
};

template <class Timing = WithoutCeilings>
Rows bench(const std::vector<Case>& cases, const KernelSource& source, BenchJournal* journal = nullptr) {
    BenchRun run{.cases = cases,
                 .source = source,
                 .arch = "gfx950",
                 .timing = [] { return std::make_unique<Timing>(); },
                 .stop = {}};
    run.options.seconds = 0.001;
    run.options.warm_up = 0;
    run.options.launches = 2;
    run.timeout = std::chrono::seconds(4);
    Rows got;
    got.end =
        bench_cases(run, journal, [&](std::size_t c, const BenchRow& row) { got.rows.emplace_back(c, row); });
    return got;
}

std::vector<std::string> lines_of(const std::string& text) {
    std::istringstream in(text);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

TEST(BenchRun, ACrashAHangAndAMistakeCostOneRowEach) {
    const std::vector<Case> cases = four_cases();
    const Rows got = bench(cases, MoodyKernel());
    ASSERT_EQ(got.rows.size(), 4U);
    using enum BenchOutcome;
    for (const auto& [c, row] : got.rows) {
        EXPECT_EQ(row.outcome, (std::array{measured, crashed, timed_out, wrong})[c]) << row.message;
        EXPECT_EQ(row.time.median > 0.0, c == 0) << row.name;
        EXPECT_EQ(row.kernels.size(), 1U) << "also of a kernel that was lost";
    }
    EXPECT_THAT(to_text(got.rows[1].second), HasSubstr("CRASHED: killed by signal 11"));
    EXPECT_THAT(to_text(got.rows[2].second), HasSubstr("TIMED OUT: still running after 4 s"));

    // Upstream's columns, in order.
    const auto rows = got.for_files(cases);
    const auto engine = lines_of(tile_engine_csv(rows));
    ASSERT_EQ(engine.size(), 5U);
    EXPECT_EQ(
        engine[0],
        "kernel,dtype,pipeline,mode,mask,bias,hdim_q,hdim_v,tile_m0,tile_n0,tile_k0,tile_n1,tile_k1,tile_"
        "k0max,"
        "warp_m0,warp_n0,warp_k0,block_per_cu,num_splits,batch,nhead_q,nhead_k,seqlen_q,seqlen_k,latency_ms,"
        "tflops,max_err,status");
    EXPECT_THAT(engine[1], testing::EndsWith(",PASS"));
    std::vector<std::string> others(engine.begin() + 2, engine.end());
    std::ranges::sort(others, {}, [](const std::string& line) { return line.substr(line.rfind(',')); });
    EXPECT_THAT(others[0], testing::EndsWith(",70,90,,,,CRASH"));
    EXPECT_THAT(others[1], testing::ContainsRegex(",70,90,,,[^,]+,FAIL$")) << "no time of a wrong kernel";
    EXPECT_THAT(others[2], testing::EndsWith(",70,90,,,,TIMEOUT"));
    const auto sweep = lines_of(sweep_csv(rows));
    ASSERT_EQ(sweep.size(), 2U) << "a table of times has the right kernel alone";
    EXPECT_EQ(sweep[0],
              "problem_name,batch,seqlen_q,seqlen_k,nhead_q,nhead_k,hdim_q,hdim_v,dtype,kernel,family,mode,"
              "pipeline,"
              "tile_m0,tile_n0,tile_k0,tile_n1,tile_k1,tile_k0max,pad_s,pad_sk,pad_d,pad_dv,mask,bias,lse,"
              "dropout,logits,"
              "sink,skip,qscale,paged_kv,rope,deterministic,dbias,latency_ms,tflops,bandwidth_gb_s");
    EXPECT_EQ(std::ranges::count(sweep[1], ','), 37);
    EXPECT_THAT(sweep[1], testing::StartsWith("moody1,1,70,90,"));
    const Json json = tile_engine_json({"gfx950", 1.0, 4}, rows);
    EXPECT_EQ(json.at("metadata").at("num_problems").get<int>(), 4);
    ASSERT_EQ(json.at("results").size(), 4U);
    for (const Json& result : json.at("results"))
        EXPECT_EQ(result.at("latency_ms").is_null(), result.at("status").get<std::string>() != "PASS");
}

/// With two entries a ceiling that no text of JSON can carry: an answer that cannot be read.
class Garbling final : public WithoutCeilings {
  public:
    std::unique_ptr<TimedKernel> prepare(const TimedCase& timed) override {
        garbled_ = std::get<FwdArgs>(timed.arguments).shape.batch == 2;
        return WithoutCeilings::prepare(timed);
    }
    Ceiling copy_ceiling() override {
        return {garbled_ ? std::numeric_limits<double>::quiet_NaN() : 0.0, {}};
    }

  private:
    bool garbled_ = false;
};

TEST(BenchRun, AnAnswerThatCannotBeReadCostsOneRow) {
    const Rows got = bench<Garbling>(four_cases(), FittingHostKernel());
    ASSERT_EQ(got.rows.size(), 4U);
    for (const auto& [c, row] : got.rows)
        EXPECT_EQ(row.outcome, c == 1 ? BenchOutcome::crashed : BenchOutcome::measured) << row.message;
    EXPECT_THAT(got.rows[1].second.message, HasSubstr("sent no row: "));
}

TEST(BenchRun, AJournalContinuesIt) {
    const std::vector<Case> cases = four_cases();
    const std::vector<Case> one(cases.begin(), cases.begin() + 1), two(cases.begin(), cases.begin() + 2);
    const system::TemporaryDirectory folder;
    const auto file = folder.path() / "journal.jsonl";
    const Json identity{{"of", "a test"}};
    double median = 0.0;
    {
        BenchJournal journal(file, identity, "run");
        median = bench(one, FittingHostKernel(), &journal).rows.at(0).second.time.median;
    }
    // A kill in the middle of a line.
    system::write_file(file, system::read_file(file) + R"({"case": "moody2", "ker)");
    BenchJournal journal(file, identity, "another");
    EXPECT_EQ(journal.run_id(), "run");
    const Rows again = bench(two, FittingHostKernel(), &journal);
    EXPECT_EQ(again.end.resumed, 1U);
    ASSERT_EQ(again.rows.size(), 2U);
    EXPECT_EQ(again.rows[0].second.time.median, median) << "not measured again";
    EXPECT_EQ(again.rows[1].second.outcome, BenchOutcome::measured);
    EXPECT_THROW(BenchJournal(file, Json{{"of", "another"}}, "x"), InputError);
}

/// Each number in its place and unit: 2 ms for 3 GFLOP and 5 MB, of ceilings of 6 TFLOP/s and 10 GB/s.
TEST(BenchRun, ARowForPeopleHasItsNumbersInTheirUnits) {
    BenchRow row;
    row.name = "a shape";
    row.kernel = "a_kernel";
    row.outcome = BenchOutcome::measured;
    row.time = {.median = 2e-3, .low = 1e-3, .high = 4e-3, .samples = 7, .best = 0.5e-3};
    row.places = 9;
    row.work.flops = 3e9;
    row.work.bytes = 5e6;
    EXPECT_EQ(to_text(row), "a shape\n    a_kernel\n"
                            "    2 ms (1 to 4, 7 launches in 9 places)   1.5 TFLOP/s   2.5 GB/s\n");
    row.matrix = {6e12, "how"};
    row.copy = {10e9, "how"};
    row.parts = {{"first", {.median = 1.5e-3, .low = 1.25e-3, .high = 1.75e-3}}};
    EXPECT_EQ(to_text(row),
              "a shape\n    a_kernel\n"
              "    2 ms (1 to 4, 7 launches in 9 places)   1.5 TFLOP/s (25 % of 6)   2.5 GB/s (25 % of 10)\n"
              "        first                   1.5 ms (1.25 to 1.75)\n");
}

/// Of two lines the last one would win without a word.
TEST(BenchRun, ARowThatIsToldTwiceIsRefused) {
    const system::TemporaryDirectory folder;
    const auto file = folder.path() / "journal.jsonl";
    const Json identity{{"of", "a test"}};
    BenchRow row;
    row.name = "a";
    row.kernel = "k";
    row.outcome = BenchOutcome::measured;
    row.time.median = 1.0;
    {
        BenchJournal journal(file, identity, "run");
        journal.append(row);
        row.round = 2;
        journal.append(row);
    }
    EXPECT_EQ(BenchJournal(file, identity, "run").finished("a", "k", 2)->time.median, 1.0);
    row.time.median = 2.0;
    BenchJournal(file, identity, "run").append(row);
    const std::string before = system::read_file(file);
    try {
        BenchJournal(file, identity, "run");
        ADD_FAILURE() << "accepted";
    } catch (const InputError& error) {
        EXPECT_EQ(error.what(), file.string() + ": line 4: k on a in round 2 has an earlier line; "
                                                "remove the file to begin anew");
    }
    EXPECT_EQ(system::read_file(file), before);
}

TEST(BenchRun, AnErrorThatIsNoNumberIsADamagedLine) {
    const system::TemporaryDirectory folder;
    const auto file = folder.path() / "journal.jsonl";
    const Json identity{{"of", "a test"}};
    BenchRow row;
    row.max_error = std::numeric_limits<double>::infinity();
    for (const std::int64_t round : {1, 2}) {
        row.round = round;
        BenchJournal(file, identity, "run").append(row);
    }
    std::string text = system::read_file(file);
    text.replace(text.find("\"inf\""), 5, "\"big\"");
    system::write_file(file, text);
    EXPECT_THAT([&] { BenchJournal(file, identity, "run"); },
                testing::ThrowsMessage<InputError>(file.string() +
                                                   ": line 2 is damaged; remove the file to begin anew"));
}

TEST(BenchRun, RowsComeBackWhole) {
    BenchRow row;
    row.name = "a";
    row.kernel = "k";
    row.round = 3;
    row.outcome = BenchOutcome::measured;
    row.time = {1.0, 0.5, 2.0, 7, 0.25};
    row.parts = {{"fwd", {3.0, 3.0, 3.0, 1, 3.0}}};
    row.places = 2;
    row.max_error = std::numeric_limits<double>::infinity();
    row.kernels.resize(1);
    row.kernels[0].signature.hdim_q = 72;
    row.work = {1.0, 2.0, 3.0};
    row.matrix = {5.0, "how"};
    const Json packed = pack(row);
    EXPECT_EQ(pack(unpack_row(Json::parse(packed.dump()))), packed);
    EXPECT_EQ(unpack_row(packed).kernels, row.kernels);
    EXPECT_THROW(unpack_row(Json{{"case", "a"}}), InputError);
}

TEST(Matching, LeavesTheKernelsWithTheSmallestHeadDimensions) {
    const auto timing = time_on_host({});
    Case c = small_case();
    c.hdim_q = c.hdim_v = 64;
    const auto source =
        house_kernels(timing->target(), "c.mask == 'no'", catalog::families_of(ApiFamily::fwd));
    const auto names = [&](KernelChoice kernels) {
        return plan_case(c, *source, "gfx950", {.kernels = kernels}).candidates;
    };
    const auto matching = names(KernelChoice::matching), all = names(KernelChoice::all);
    EXPECT_GT(matching.size(), 1U);
    EXPECT_LT(matching.size(), all.size());
    for (const Candidate& candidate : matching)
        EXPECT_EQ(candidate.stages.front().instance->config().signature.hdim_q, 64);
}

TEST(Problems, AreUpstreamsNumbers) {
    EXPECT_THAT(parse_problems("2,8,1024,128;1,32,8,1,8192,64"),
                ElementsAre(ProblemSizes{2, 8, 8, 1024, 1024, 128}, ProblemSizes{1, 32, 8, 1, 8192, 64}));
    const auto refused = [](const char* text) {
        try {
            parse_problems(text);
        } catch (const InputError& error) {
            return std::string(error.what());
        }
        return std::string("accepted");
    };
    EXPECT_THAT(refused("1,2,3"), HasSubstr("has 3 numbers; allowed: 4 (batch"));
    EXPECT_THAT(refused("1,2,x,4"), HasSubstr("\"x\" in \"1,2,x,4\" is no number from 1 to 2147483647"));
    EXPECT_THAT(refused("1,1,1000000000000000000,128"), HasSubstr("is no number from 1 to 2147483647"));
    EXPECT_THAT(refused("65537,1,1,128"), HasSubstr("has a batch of 65537; allowed: 1 to 65536"));
    EXPECT_THAT(refused("1,0,3,4"), HasSubstr("\"0\""));
    EXPECT_THAT(refused(";"), HasSubstr("names no problem"));
}

TEST(Problems, HaveTheFeaturesOfTheKernels) {
    const auto archs = arch::ArchSet::built_in();
    catalog::Request request;
    request.rules = catalog::RuleSet::claim;
    request.targets = {archs.at("gfx950").name()};
    request.families = catalog::families_of(ApiFamily::fwd_splitkv);
    std::vector<ListedKernel> list;
    for (const KernelConfig& config : catalog::list(archs, request))
        if (config.signature.hdim_q == 128 && config.signature.data_type == DataType::bf16)
            list.push_back({"k", config});
    const std::vector<ProblemSizes> problems{{3, 8, 2, 5, 700, 128}, {1, 1, 1, 1, 1, 64}};
    const std::vector<std::int64_t> splits{1, 4};
    const auto cases = problem_cases(list, problems, splits);
    ASSERT_GT(cases.size(), 10U);
    std::map<std::int64_t, std::size_t> counts;
    for (const Case& c : cases) {
        EXPECT_EQ(c.batch, 3);
        EXPECT_EQ(c.nhead_q, 8);
        EXPECT_EQ(c.nhead_k, 2);
        for (const std::int64_t length : c.seqlen_k) EXPECT_EQ(length, 700);
        EXPECT_EQ(c.seqlen_q.size(), c.mode == Mode::group ? 3U : 1U);
        EXPECT_EQ(c.expect, Expectation::pass);
        ++counts[c.split.num_splits];
    }
    EXPECT_EQ(counts[1], counts[4]);
    EXPECT_EQ(counts.size(), 2U);
}

TEST(Ranges, MultiplyOrAdd) {
    EXPECT_THAT(expand_ranges("seqlen=32:256:x2"),
                ElementsAre("seqlen=32", "seqlen=64", "seqlen=128", "seqlen=256"));
    EXPECT_THAT(expand_ranges("batch=1:6:+3,heads=32:8,hdim=64:128:x2"),
                ElementsAre("batch=1,heads=32:8,hdim=64", "batch=1,heads=32:8,hdim=128",
                            "batch=4,heads=32:8,hdim=64", "batch=4,heads=32:8,hdim=128"));
    EXPECT_THAT(expand_ranges("mask=t"), ElementsAre("mask=t"));
    EXPECT_THAT(expand_ranges("seqlen=7:7:x2"), ElementsAre("seqlen=7"));
    const auto refused = [](const char* text) {
        try {
            expand_ranges(text);
        } catch (const InputError& error) {
            return std::string(error.what());
        }
        return std::string("accepted");
    };
    for (const char* text : {",", "seqlen=32,", ",seqlen=32", "seqlen=32,,hdim=64"})
        EXPECT_THAT(refused(text), HasSubstr("nothing is set on one side of a comma; expected field=value"));
    EXPECT_THAT(refused(""), HasSubstr("nothing is set in it"));
    EXPECT_THAT(refused("seqlen=1:9:2"), HasSubstr("range 1:9:2: not of this form"));
    EXPECT_THAT(refused("seqlen=9:1:x2"), HasSubstr("exceeds the last"));
    EXPECT_THAT(refused("seqlen=1:9:x1"), HasSubstr("does not grow"));
    EXPECT_THAT(refused("seqlen=0:9:x2"), HasSubstr("does not grow"));
    EXPECT_THAT(refused("seqlen=1:a:x2"), HasSubstr("not of this form"));
    EXPECT_THAT(refused("seqlen=1:99999:+1"), HasSubstr("more than 10000"));
    EXPECT_THAT(refused("seqlen=1:9223372036854775807:x2,batch=1:1000:+1"),
                HasSubstr("more than 10000 shapes"));
    // Refused before 76 million shapes are made.
    EXPECT_THAT(refused("seqlen=62:44188:+5,batch=62:44188:+5"), HasSubstr("more than 10000 shapes"));
}

} // namespace
} // namespace fmha::harness::test
