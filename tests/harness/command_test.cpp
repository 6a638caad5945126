// The command line: exit codes 0, 1 and 2 and nothing else, one sentence for every kind of bad input, and reports.

#include "dispatcher/system/files.hpp"
#include "harness/npy/npy.hpp"
#include "tests/harness/command_support.hpp"
#include "tests/harness/kernels_for_tests.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace fmha::cli {
namespace {

using test::Ran;
using test::run;
using test::Scratch;
using test::verify_on;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

constexpr const char* one_case = "fwd/ragged_tail[hdim=64,dtype=fp16,seqlen_k=15,mask=0,fill=indexed]@1";

TEST(Verify, GreenIsZero) {
    const Ran ran = verify_on<harness::test::FittingHostKernel>({one_case});
    EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("1 asked   1 passed   0 failed"));
    EXPECT_THAT(ran.out, HasSubstr("GREEN"));
}

TEST(Verify, AFailureIsOneAndReproducesItself) {
    const std::function<void(const FwdArgs&)> spoil = [](const FwdArgs& args) {
        static_cast<std::uint16_t*>(args.o.data)[args.o.offset(0, 1, 3, 5)] ^= 0x1000U;
    };
    const Ran ran = verify_on<harness::test::SpoiledKernel>({one_case, "--jobs", "1"}, spoil);
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.out, HasSubstr("FAILED " + std::string(one_case)));
    EXPECT_THAT(ran.out, HasSubstr(fmt::format("repeat   fmha verify '{}' --arch gfx950", one_case)));
    EXPECT_THAT(ran.out, Not(HasSubstr("--timeout")));
    EXPECT_THAT(ran.out, HasSubstr("pattern  1 of"));
    EXPECT_THAT(ran.out, HasSubstr("G1:o="));
    EXPECT_THAT(ran.out, HasSubstr("worst    tensor"));
    const Ran patient =
        verify_on<harness::test::SpoiledKernel>({one_case, "--jobs", "1", "--timeout", "900"}, spoil);
    EXPECT_THAT(patient.out, testing::ContainsRegex("repeat   fmha verify .* --timeout 900\n"));
}

TEST(Verify, ACrashIsOneAndKeepsTheOtherResults) {
    const Ran ran = verify_on<harness::test::SpoiledKernel>(
        {one_case, "fwd/ragged_tail[hdim=64,dtype=fp16,seqlen_k=129,mask=0,fill=indexed]@1", "--jobs", "2"},
        std::function<void(const FwdArgs&)>([](const FwdArgs& args) {
            if (args.shape.seqlen_k > 100) static_cast<volatile char*>(args.o.data)[1LL << 34] = 1;
        }));
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.out, HasSubstr("1 crashed"));
    EXPECT_THAT(ran.out, Not(HasSubstr("   0 passed")));
}

TEST(Verify, AnEmptyCatalogueIsRed) {
    const Ran ran = verify_on<harness::test::NoKernels>({one_case});
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.out, HasSubstr("REFUSED UNEXPECTEDLY"));
}

TEST(Verify, NothingExecutedIsRed) {
    const Ran ran = verify_on<harness::test::FittingHostKernel>({one_case, "--shard", "2/2"});
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.out, HasSubstr("RED: nothing was executed"));
}

TEST(Verify, AListOfNothingIsToldAndRed) {
    for (const std::vector<std::string>& line :
         {std::vector<std::string>{"fwd/tiny", "--family", "bwd"}, {one_case, "--shard", "2/2"}})
        for (const bool json : {false, true}) {
            std::vector<std::string> list = line;
            list.emplace_back("--list");
            if (json) list.insert(list.end(), {"--format", "json"});
            const Ran ran = verify_on<harness::test::NoKernels>(list);
            EXPECT_EQ(ran.code, 1);
            EXPECT_EQ(ran.out, json ? "[]\n" : "");
            EXPECT_EQ(ran.err, "fmha verify: no case matches; a run of none is red (CASES, --tier, --family, "
                               "--shard)\n");
        }
}

TEST(Verify, ListsWithoutRunning) {
    const Ran ran = verify_on<harness::test::NoKernels>({one_case, "--list"});
    EXPECT_EQ(ran.code, 0);
    EXPECT_EQ(ran.out, std::string(one_case) + "\n");
}

TEST(Verify, ListsAsJson) {
    const Ran ran = verify_on<harness::test::NoKernels>({one_case, "--list", "--format", "json"});
    EXPECT_EQ(nlohmann::json::parse(ran.out), nlohmann::json::array({one_case}));
}

TEST(Verify, AnInterruptedRunReportsWhatFinishedAndIsRed) {
    const Ran ran = verify_on<harness::test::SpoiledKernel>(
        {one_case, "fwd/ragged_tail[hdim=64,dtype=fp16,seqlen_k=129,mask=0,fill=indexed]@1", "--jobs", "1",
         "--not-run-budget", "9"},
        std::function<void(const FwdArgs&)>([](const FwdArgs& args) {
            if (args.shape.seqlen_k > 100) kill(getppid(), SIGTERM);
            while (args.shape.seqlen_k > 100) pause();
        }));
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.out, HasSubstr("2 asked   1 passed   0 failed   0 refused as predicted   1 not run"));
    EXPECT_THAT(ran.out, HasSubstr("RED: interrupted"));
}

TEST(Verify, AReportThatCannotBeWrittenIsKnownBeforeTheRun) {
    const Ran ran = verify_on<harness::test::FittingHostKernel>({one_case, "--json", "/proc/nothing/x.json"});
    EXPECT_EQ(ran.code, 2);
    EXPECT_THAT(ran.err, HasSubstr("/proc/nothing/x.json: cannot be written"));
    EXPECT_EQ(ran.out, "");
}

TEST(Verify, AFullDiskTakesNoVerdictAway) {
    const Ran ran = verify_on<harness::test::FittingHostKernel>({one_case, "--json", "/dev/full"});
    EXPECT_EQ(ran.code, 2);
    EXPECT_THAT(ran.out, HasSubstr("GREEN"));
    EXPECT_THAT(ran.err, HasSubstr("/dev/full: cannot be written"));
    EXPECT_TRUE(fs::is_character_file("/dev/full"));
    // The other reports are there, and every file that is not has its sentence.
    const Scratch folder;
    const Ran others = verify_on<harness::test::FittingHostKernel>(
        {one_case, "--html", "/dev/full", "--json", "/dev/full", "--junit", folder / "r.xml"});
    EXPECT_EQ(others.code, 2);
    EXPECT_THAT(others.err, HasSubstr("/dev/full: cannot be written: No space left on device; /dev/full: "));
    EXPECT_THAT(others.out, HasSubstr("   junit " + folder / "r.xml"));
    EXPECT_THAT(others.out, Not(HasSubstr("   json ")));
    EXPECT_TRUE(fs::is_regular_file(folder / "r.xml"));
}

TEST(Verify, TakesACaseFileThroughAPipe) {
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe(ends.data()), 0);
    const std::string text = system::read_file(FMHA_CASES_DIR "/fwd/tiny.json");
    ASSERT_EQ(write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
    close(ends[1]);
    const std::string path = fmt::format("/dev/fd/{}", ends[0]);
    const Ran ran = run({"verify", "--list", path});
    close(ends[0]);
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr(path + "["));
}

TEST(Verify, WritesAllReports) {
    const Scratch folder;
    const Ran ran = verify_on<harness::test::FittingHostKernel>(
        {one_case, "--json", folder / "a/r.json", "--junit", folder / "r.xml", "--html", folder / "r.html"});
    ASSERT_EQ(ran.code, 0) << ran.err;
    const auto text = [](const std::string& file) {
        std::ifstream stream(file);
        return std::string(std::istreambuf_iterator<char>(stream), {});
    };
    const auto document = nlohmann::json::parse(text(folder / "a/r.json"));
    EXPECT_EQ(document["schema"], "fmha-verify-1");
    EXPECT_EQ(document["ledger"]["passed"], 1);
    EXPECT_EQ(document["results"][0]["name"], one_case);
    EXPECT_THAT(document["run"]["command"].get<std::string>(), HasSubstr("fmha verify"));
    EXPECT_THAT(text(folder / "r.xml"), HasSubstr("<testsuite name=\"fwd\" tests=\"1\" failures=\"0\""));
    EXPECT_THAT(text(folder / "r.html"), HasSubstr("<span class=\"verdict passed\">green</span>"));
}

TEST(Verify, JsonToStandardOutput) {
    const Ran ran = verify_on<harness::test::FittingHostKernel>({one_case, "--format", "json"});
    EXPECT_EQ(nlohmann::json::parse(ran.out)["ledger"]["green"], true);
}

/// The case's own value, not the default of a problem without pages.
TEST(Refusals, NameThePageSizeOfTheCase) {
    EXPECT_THAT(run({"verify", "pagedkv/plain[page_size=0]", "--cases-root", FMHA_CASES_DIR}).out,
                HasSubstr("P-4: page_size 0 is not a positive multiple of 128"));
}

TEST(BadInput, IsExitCodeTwoWithASentence) {
    const Scratch folder;
    const std::string one = one_case, missing = folder / "nothing";
    std::ofstream(folder / "broken.json") << "{";
    struct Row {
        std::vector<std::string> arguments;
        std::string sentence;
    };
    const std::vector<Row> table{
        {{}, "subcommand"},
        {{"verfy"}, "\"verfy\" is not a subcommand; there are:"},
        {{"verfy"}, "; did you mean verify?"},
        {{"--frobnicate"}, "--frobnicate"},
        {{"verify", "--tire", "smoke"}, "--tire is not an option; did you mean --tier? (see fmha verify"},
        {{"verify", "--repaets=3"}, "--repaets=3 is not an option; did you mean --repeats?"},
        {{"verify", "--unheard-of-this"}, "--unheard-of-this is not an option (see fmha verify --help)"},
        {{"verify", "--tier", "enormous"}, "enormous"},
        {{"verify", "--target", "moon"}, "moon"},
        {{"verify", "--kernels", "some"}, "some"},
        {{"verify", "--format", "xml"}, "xml"},
        {{"verify", "--seed", "-1"}, "--seed"},
        {{"verify", "--seed", "ten"}, "ten"},
        {{"verify", "--seed"}, "--seed"},
        {{"verify", ""}, "CASES: an empty value is not allowed"},
        {{"verify", one, "--json", ""}, "--json: an empty value is not allowed"},
        {{"verify", one, "--jobs", ""}, "--jobs: an empty value is not allowed"},
        {{"verify", one, "--json", "-"}, "--json: \"-\" is not allowed, standard output has the verdict"},
        {{"verify", one, "--store", "-"}, "--store: \"-\" is not allowed"},
        {{"bench", "--journal", "-"}, "--journal: \"-\" is not allowed"},
        {{"generate", "--out", "-"}, "--out: \"-\" is not allowed"},
        {{"reference", "--case", one, "--out", "-"}, "--out: \"-\" is not allowed"},
        {{"plan", "--export", "-"}, "--export: \"-\" is not allowed"},
        {{"verify", one, "--family", "fwd_"}, "--family fwd_: not known; allowed: fwd, "},
        {{"verify", one, "--list", "--pairs"}, "--list and --pairs exclude one another"},
        {{"verify", "fwd/pairs", "--pairs", "--format", "json"}, "not JSON"},
        {{"verify", "fwd/pairs", "--pairs", "--shard", "1/2"}, "--pairs and --shard exclude one another"},
        {{"verify", one, "--pairs"},
         "--pairs " + one + ": is the name of a case; allowed: case files and folders"},
        {{"plan", "--snapshots", "x", "--problem", "y"}, "--snapshots goes with --accept and --reason only"},
        {{"plan", "--problem", "x", "--policy", "ck", "--rules", "house"}, "--rules ck only, got house"},
        {{"enumerate", "--names", "--count"}, "--names and --count exclude one another"},
        {{"enumerate", "--where-file", FMHA_CASES_DIR}, "is a folder, not a file"},
        {{"enumerate", "--config", FMHA_CASES_DIR}, "is a folder, not a file"},
        {{"enumerate", "--arch-dir", folder / "nothing"}, "not a folder of architecture files"},
        {{"enumerate", "--where", ""}, "--where: an empty value is not allowed"},
        {{"verify", one, "--jobs", "many"}, "--jobs: \"many\" is not an integer of 64 bits"},
        {{"verify", one, "--jobs", "2x"}, "--jobs: \"2x\" is not an integer of 64 bits"},
        {{"fuzz", "--minutes", "soon"}, "--minutes: \"soon\" is not a number"},
        {{"verify", one, "--jobs", "-2"}, "--jobs is -2; allowed: 0 to 1000000"},
        {{"verify", one, "--repeats", "-1"}, "--repeats is -1"},
        {{"verify", one, "--timeout", "-5"}, "--timeout is -5"},
        {{"verify", one, "--shard", "0/2"}, "0/2"},
        {{"verify", one, "--shard", "3/2"}, "3/2"},
        {{"verify", one, "--shard", "half"}, "half"},
        {{"verify", one, "--kernel", "x*"}, "--kernel needs --kernels all"},
        {{"verify", one, "--arch", "gfx000"}, "gfx000"},
        {{"verify", one, "--arch", "GFX942:sramecc+:xnack-"}, "; did you mean gfx942?"},
        {{"enumerate", "gfx942"}, "gfx942: there is no such sweep configuration"},
        {{"verify", one, "--where", "c.colour == 'red'"}, "colour"},
        {{"verify", one, "--where", "c.hdim_q =="}, "c.hdim_q =="},
        {{"verify", one, "--where", "c.hdim_q == 3"}, "no kernel of gfx950 is left"},
        {{"verify", "fwd/nothing_like_that"}, "fwd/nothing_like_that"},
        {{"verify", "fwd/ragged_tial"}, "; did you mean fwd/ragged_tail?"},
        {{"verify", "fwd/ragged_tial[hdim=64]@1"}, "; did you mean fwd/ragged_tail?"},
        {{"verify", folder / "broken.json"}, "broken.json"},
        {{"verify", "fwd/ragged_tail[colour=red]@1"}, "colour"},
        {{"verify", "fwd/ragged_tail[hdim=sixty]@1"}, "sixty"},
        {{"verify", one, "--json", FMHA_CASES_DIR}, "is a folder"},
        {{"verify", one, "--html", "/proc/nothing/x.html"}, "/proc/nothing/x.html"},
        {{"reference"}, "--case"},
        {{"reference", "--case", one}, "--out"},
        {{"reference", "--case", "fwd/ragged_tail", "--out", missing}, "cases; name one of them"},
        {{"reference", "--case", one, "--out", missing, "--tensors", missing}, "nothing: is not a folder"},
        {{"reference", "--case", one, "--out", folder / "broken.json"}, "broken.json"},
        {{"reference", "--case", one, "--out", missing, "--arch", "gfx1"}, "gfx1"},
        {{"check"}, "--case"},
        {{"check", "--case", one}, "--tensors"},
        {{"check", "--case", one, "--tensors", folder / "broken.json"}, "is not a folder"},
        {{"check", "--case", one, "--tensors", FMHA_CASES_DIR}, "q.npy: cannot be opened"},
        {{"check", "--case", one, "--tensors", FMHA_CASES_DIR, "--p-prescale", "0"}, "--p-prescale is 0"},
        {{"check", "--case", one, "--tensors", FMHA_CASES_DIR, "--p-prescale", "nan"}, "--p-prescale"},
        {{"check", "--case", "fwd/ragged_tail[hdim=64,dtype=fp16,seqlen_k=129]@1", "--tensors",
          FMHA_CASES_DIR, "--p-prescale", "1e-8"},
         "--p-prescale is 1e-08; allowed for fp16: at least 6.103515625e-05"},
    };
    for (const auto& row : table) {
        std::vector<std::string> arguments = row.arguments;
        if (arguments.size() > 1 && arguments.front() != "enumerate" && arguments.front() != "plan")
            arguments.insert(arguments.end(), {"--cases-root", FMHA_CASES_DIR});
        const Ran ran = run(arguments);
        EXPECT_EQ(ran.code, 2) << fmt::format("{}", fmt::join(row.arguments, " ")) << "\n"
                               << ran.out << ran.err;
        EXPECT_THAT(ran.err, HasSubstr(row.sentence)) << fmt::format("{}", fmt::join(row.arguments, " "));
    }
}

TEST(BadInput, TensorFilesThatDoNotFitTheCase) {
    const Scratch folder;
    ASSERT_EQ(
        run({"reference", "--case", one_case, "--cases-root", FMHA_CASES_DIR, "--out", folder / "t"}).code,
        0);
    const harness::NpyArray q = harness::read_npy(folder / "t/q.npy");
    const auto refused = [&](const harness::NpyArray& other) {
        harness::write_npy(folder / "t/q.npy", other);
        const Ran ran = run({"reference", "--case", one_case, "--cases-root", FMHA_CASES_DIR, "--tensors",
                             folder / "t", "--out", folder / "u"});
        EXPECT_EQ(ran.code, 2);
        return ran.err;
    };
    harness::NpyArray other = q;
    other.type = harness::NpyType::uint8;
    other.shape.back() *= 2;
    EXPECT_THAT(refused(other), HasSubstr("q.npy: dtype is uint8; allowed: float16"));
    other = q;
    std::swap(other.shape[1], other.shape[2]);
    EXPECT_THAT(refused(other), HasSubstr("q.npy: shape is "));
    other = q;
    other.shape.push_back(1);
    EXPECT_THAT(refused(other), HasSubstr("the case needs " + harness::shape_text(q.shape)));
    other = q;
    other.bytes[0] = 0xFF;
    other.bytes[1] = 0x7F;
    EXPECT_THAT(refused(other), HasSubstr("entry 0 head 0 row 0 column 0 is NaN"));
}

TEST(BadInput, ABiasThatIsNaN) {
    const Scratch folder;
    const std::string name = "fwd/bias_group[mask=0,bias=e:0]@1";
    const std::vector<std::string> common{"reference",    "--case",       name,
                                          "--cases-root", FMHA_CASES_DIR, "--out"};
    auto write = common, read = common;
    write.push_back(folder / "t");
    ASSERT_EQ(run(write).code, 0);
    harness::NpyArray bias = harness::read_npy(folder / "t/bias.npy");
    bias.bytes[0] = 0xFF;
    bias.bytes[1] = 0x7F;
    harness::write_npy(folder / "t/bias.npy", bias);
    read.insert(read.end(), {folder / "u", "--tensors", folder / "t"});
    EXPECT_EQ(run(read).code, 2);
    EXPECT_THAT(run(read).err, HasSubstr("bias.npy: entry 0 head 0 row 0 column 0 is NaN"));
}

// Of scores that are not finite no reference can say anything: it wrote NaN.
TEST(BadInput, WhatMakesScoresInfinite) {
    struct Row {
        const char *name, *file, *sentence;
        std::vector<std::uint8_t> bytes;
    };
    const std::vector<std::uint8_t> half{0x00, 0x7C}, minus_half{0x00, 0xFC}, single{0x00, 0x00, 0x80, 0x7F};
    const std::string first = ": entry 0 head 0 row 0 column 0 is ";
    for (const Row& row : std::vector<Row>{
             {"fwd/plain@1", "q", "inf; scores must be finite (L-5)\n", half},
             {"bwd/plain@1", "k", "-inf; scores must be finite (L-5)\n", minus_half},
             {"fwd/plain[bias=a:0]@1", "alibi_slopes", "inf; scores must be finite (L-5)\n", single},
             {"fwd/plain[bias=e:0]@1", "bias", "inf; a bias is finite or -inf (E-2)\n", half},
             {"fwd/plain[bias=e:0]@1", "bias", "", minus_half},
             {"fwd/plain@1", "v", "", half},
             {"appendkv/plain[hdim=32]@1", "q", "", half}}) {
        const Scratch folder;
        std::vector<std::string> read{"reference",    "--case", row.name,    "--cases-root",
                                      FMHA_CASES_DIR, "--out",  folder / "t"};
        ASSERT_EQ(run(read).code, 0) << row.name;
        const std::string file = fmt::format("t/{}.npy", row.file);
        harness::NpyArray array = harness::read_npy(folder / file);
        std::ranges::copy(row.bytes, array.bytes.begin());
        harness::write_npy(folder / file, array);
        read.back() = folder / "u";
        read.insert(read.end(), {"--tensors", folder / "t"});
        const Ran ran = run(read);
        const std::string said(row.sentence);
        EXPECT_EQ(ran.code, said.empty() ? 0 : 2) << row.name << row.file;
        const auto at = ran.err.find(file.substr(2) + first);
        EXPECT_EQ(at == std::string::npos ? ran.err : ran.err.substr(at + file.size() - 2 + first.size()),
                  said);
    }
}

TEST(Help, EveryCommandHasAnExample) {
    for (const auto& command : all_commands()) {
        const Ran ran = run({std::string(command->name()), "--help"});
        EXPECT_EQ(ran.code, 0);
        EXPECT_THAT(ran.out, HasSubstr("Example:"));
        EXPECT_THAT(ran.out, HasSubstr("fmha " + std::string(command->name())));
    }
    EXPECT_THAT(run({"--version"}).out, HasSubstr("fmha 0."));
}

} // namespace
} // namespace fmha::cli
